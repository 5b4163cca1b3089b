package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
)

type peopleCommand struct {
	Add peopleAddCommand    `cmd:"" help:"Add a person, and print the person's token once." example:"monitor people add anna --role operator --file people.yaml; monitor people add anna --role operator --file people.yaml --config monitor.yaml"`
	Ls  peopleListCommand   `cmd:"" help:"List the people." example:"monitor people ls --file people.yaml; monitor people ls --file people.yaml -o json"`
	Rm  peopleRemoveCommand `cmd:"" help:"Remove a person: the token and all sessions of the person end." example:"monitor people rm anna --file people.yaml"`
}

// peopleFile is the file that the commands work on.
type peopleFile struct {
	File string `required:"" placeholder:"FILE" help:"File of people, page.people in the configuration of the monitor."`
}

// audited is the optional configuration of commands that need Kafka for nothing else.
type audited struct {
	Config string `placeholder:"FILE" help:"Configuration of the monitor; of it only 'kafka' is used: the audit has a record of the change then."`
}

// record puts a change of a file of people on the topic of the audit. If the flags do not say where that is, it
// prints a note.
func (f audited) record(ctx context.Context, out cli.Output, action event.Action, name string, err error) {
	if f.Config == "" {
		fmt.Fprintf(out.Stderr, "note: %s has no record of this: name the monitor's configuration with --config or TCM_CONFIG\n", bus.TopicAudit)
		return
	}
	_, to, wrong := loadBus(f.Config)
	if wrong != nil {
		fmt.Fprintf(out.Stderr, "note: %s has no record of this: %v\n", bus.TopicAudit, wrong)
		return
	}
	cli.AuditCommand(ctx, to, program, "", out.Stderr, event.Audit{Action: action, Object: name}, err)
}

// personName names a person.
type personName struct {
	Name string `arg:"" help:"Name of the person, by which alarms say who answered them."`
}

type peopleAddCommand struct {
	peopleFile
	audited
	personName
	Role string `required:"" enum:"viewer,operator,engineer" placeholder:"ROLE" help:"viewer: looks. operator: also answers alarms. engineer: also takes alarms out of use."`
}

// Run adds a person. Only the token goes to standard output, for programs.
func (f *peopleAddCommand) Run(ctx context.Context, out cli.Output) error {
	token, err := credential.AddPerson(f.File, credential.Person{Name: f.Name, Role: credential.Role(f.Role)})
	if err != nil {
		f.record(ctx, out, event.AddPerson, f.Name, err)
		return err
	}
	defer f.record(ctx, out, event.AddPerson, f.Name+" ("+f.Role+")", nil) // the person gets the token first
	fmt.Fprintf(out.Stderr, "added %s (%s) to %s. This is %[1]s's token. It is not shown again:\n", f.Name, f.Role, f.File)
	_, err = fmt.Fprintln(out.Stdout, token)
	return err
}

type peopleListCommand struct {
	peopleFile
	cli.Listing
}

// Run lists the people of a file.
func (f *peopleListCommand) Run(out cli.Output) error {
	people, err := credential.ListPeople(f.File)
	if err != nil {
		return err
	}
	if f.IsJSON() {
		type row struct {
			Name string `json:"name"`
			Role string `json:"role"`
		}
		rows := []row{}
		for _, p := range people {
			rows = append(rows, row{p.Name, string(p.Role)})
		}
		return cli.PrintJSON(out.Stdout, rows)
	}
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\trole")
	for _, p := range people {
		fmt.Fprintf(w, "%s\t%s\n", p.Name, p.Role)
	}
	return w.Flush()
}

type peopleRemoveCommand struct {
	peopleFile
	audited
	personName
}

// Run removes a person from a file.
func (f *peopleRemoveCommand) Run(ctx context.Context, out cli.Output) error {
	err := credential.RemovePerson(f.File, f.Name)
	f.record(ctx, out, event.RemovePerson, f.Name, err)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out.Stdout, "removed %s from %s\n", f.Name, f.File)
	return err
}
