package cli

import (
	"fmt"
	"net/http"
	"time"

	"github.com/alecthomas/kong"
)

// healthFlag asks another process of the program for its health, and ends. Images without a shell
// have nothing else to ask with.
type healthFlag string

// BeforeReset is called by kong where the flag is given.
func (healthFlag) BeforeReset(app *kong.Kong, ctx *kong.Context) error {
	for _, p := range ctx.Path {
		if p.Flag != nil && p.Flag.Name == "health" {
			url := fmt.Sprint(ctx.FlagValue(p.Flag))
			client := http.Client{Timeout: 4 * time.Second}
			answer, err := client.Get(url)
			if err != nil {
				return fmt.Errorf("--health: %w", err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("--health: %s answers %s", url, answer.Status)
			}
			app.Exit(0)
		}
	}
	return nil
}
