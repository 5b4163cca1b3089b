// Command study writes the pages of docs/figures/study from cells that are there: what
// methods reached on KEEL's data sets, compared with what a paper on ECS-DBN printed
// and with what Python's classifiers reach.
//
//	go run -C bench ./study -keel DIR -o ../docs/figures/study
//
// In the folder it reads cells.csv, which trainer study made, and peers.csv,
// which bench/peers/study/peers.py made, and links defaults.md and drill/drill.md; the
// last three need not be there. It fits nothing.
//
// A method's score on a set is the mean over trials of the mean over folds; its
// spread is the standard deviation over trials. Methods are compared on the sets
// that all of them have. Equal cells, equal bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/flank-tcm/flank/internal/study"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("study: ")
	keel := flag.String("keel", "", "folder of KEEL's data sets, with the paper's tables")
	dir := flag.String("o", "../docs/figures/study", "folder of the cells and the pages")
	flag.Parse()
	if err := write(*keel, *dir); err != nil {
		log.Fatal(err)
	}
}

func write(keel, dir string) error {
	if keel == "" {
		return errors.New("-keel names the folder of KEEL's data sets")
	}
	paper, err := ReadPaper(keel)
	if err != nil {
		return err
	}
	in := Input{Methods: study.Methods(), Paper: paper}
	if in.Cells, err = study.LoadCells(filepath.Join(dir, study.CellsFile)); err != nil {
		return err
	}
	peers, err := study.LoadCells(filepath.Join(dir, "peers.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "no %s: Python's classifiers are left out\n", filepath.Join(dir, "peers.csv"))
	} else if err != nil {
		return err
	}
	in.Cells = append(in.Cells, peers...)
	for name, link := range map[string]*string{"defaults.md": &in.Defaults, "drill/drill.md": &in.Drill} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			*link = name
		}
	}
	return Write(dir, in)
}
