// Judges a Nomad job, JSON on standard input as `disttf render nomad` writes it, by the rules of a server that is given
// one. Exit code 1, and what is wrong, where it would be refused. .ci/tools makes a program of it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/nomad/nomad/structs"
)

// What Nomad's command line fills in before it sends a job.
func complete(job *structs.Job) {
	if job.Region == "" {
		job.Region = "global"
	}
	for _, group := range job.TaskGroups {
		for _, task := range group.Tasks {
			if task.LogConfig == nil {
				task.LogConfig = structs.DefaultLogConfig()
			}
		}
	}
	job.Canonicalize()
}

func judge() error {
	var submitted struct{ Job *structs.Job }
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&submitted); err != nil {
		return err
	}
	if submitted.Job == nil {
		return fmt.Errorf("there is no Job")
	}
	complete(submitted.Job)
	return submitted.Job.Validate()
}

func main() {
	if err := judge(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
