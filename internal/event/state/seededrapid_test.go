package state

import _ "github.com/flank-tcm/flank/internal/testkit/seededrapid"
