package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// errRefused means that a model server did not answer.
var errRefused = errors.New("the model server refused the request")

// ask asks a model at an endpoint once, and prints the answer as the server wrote it.
func ask(ctx context.Context, endpoint string) error {
	body := strings.NewReader(`{"model":"trivial","messages":[{"role":"user","content":"Say it."}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/chat/completions", body)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: HTTP %s", errRefused, res.Status)
	}
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}
