package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/credential"
)

type peopleCommand struct {
	Add peopleAddCommand    `cmd:"" help:"Add a person, and print the person's token once."`
	Ls  peopleListCommand   `cmd:"" help:"List the people."`
	Rm  peopleRemoveCommand `cmd:"" help:"Remove a person: the token and all sessions of the person end."`
}

// peopleFile is the file that the commands work on.
type peopleFile struct {
	File string `required:"" placeholder:"FILE" help:"File of people, page.people in the configuration of the monitor."`
}

type peopleAddCommand struct {
	peopleFile
	Name string `arg:"" help:"Name, as alarms will say who answered them."`
	Role string `required:"" enum:"viewer,operator,engineer" placeholder:"ROLE" help:"viewer: looks. operator: also answers alarms. engineer: also takes alarms out of use."`
}

// Run adds a person. Only the token goes to standard output, for programs.
func (f *peopleAddCommand) Run(out cli.Output) error {
	token, err := credential.AddPerson(f.File, credential.Person{Name: f.Name, Role: credential.Role(f.Role)})
	if err != nil {
		return err
	}
	fmt.Fprintf(out.Stderr, "added %s (%s) to %s. This is %[1]s's token. It is not shown again:\n", f.Name, f.Role, f.File)
	_, err = fmt.Fprintln(out.Stdout, token)
	return err
}

type peopleListCommand struct{ peopleFile }

// Run lists the people of a file.
func (f *peopleListCommand) Run(out cli.Output) error {
	people, err := credential.ListPeople(f.File)
	if err != nil {
		return err
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
	Name string `arg:"" help:"Name, as monitor people ls prints it."`
}

// Run removes a person from a file.
func (f *peopleRemoveCommand) Run(out cli.Output) error {
	if err := credential.RemovePerson(f.File, f.Name); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out.Stdout, "removed %s from %s\n", f.Name, f.File)
	return err
}
