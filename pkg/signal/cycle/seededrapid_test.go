package cycle_test

import _ "github.com/flank-tcm/flank/internal/testkit/seededrapid"
