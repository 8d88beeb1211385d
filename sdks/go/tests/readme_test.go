package tests

import (
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the README's examples take as given.
const given = `package readme

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"time"

	"waypost"
)

var (
	ctx             context.Context
	client          *waypost.Client
	message         *waypost.SendMessageRequest
	receipt         *waypost.SendMessageRequest
	order           struct{ ID string }
	id, path        string
	secret, newSecret, oldSecret string
)

func markAsBounced(address string, kind waypost.BounceType) {}

var _ = []any{errors.New, fmt.Sprint, io.EOF, log.Fatal, slog.Default, http.NewRequest, time.Now, waypost.New}
`

// The README's Go compiles, and is formatted.
func TestReadme(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(must(os.ReadFile("../README.md"))(t)), -1)
	if len(blocks) == 0 {
		t.Fatal("README.md has no Go")
	}
	directory := must(os.MkdirTemp(".", "readme-"))(t)
	defer os.RemoveAll(directory)
	source := given
	for i, block := range blocks {
		if formatted := must(format.Source([]byte(block[1])))(t); string(formatted) != block[1] {
			t.Errorf("gofmt would write\n%s", formatted)
		}
		if strings.HasPrefix(block[1], "func ") {
			source += block[1]
		} else {
			source += fmt.Sprintf("\nfunc block%d() (err error) {\n{\n%s\n_ = err\n}\nreturn nil\n}\n", i, block[1])
		}
	}
	if err := os.WriteFile(filepath.Join(directory, "readme.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("go", "vet", "./"+directory).CombinedOutput(); err != nil {
		t.Errorf("%s", output)
	}
}

// The package needs nothing but the standard library.
func TestDependencies(t *testing.T) {
	if module := string(must(os.ReadFile("../go.mod"))(t)); strings.Contains(module, "require") {
		t.Error(module)
	}
}
