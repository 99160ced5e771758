// Package warm imports what programs and their tests commonly import, so that
// the toolbox image has it compiled.
package warm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"
)

func TestWarm(t *testing.T) {
	for _, imported := range []any{
		bufio.ErrTooLong, bytes.ErrTooLarge, context.Canceled, json.Valid, errors.ErrUnsupported, flag.ErrHelp, fmt.Sprint, io.EOF,
		math.Pi, http.StatusOK, httptest.DefaultRemoteAddr, os.ErrNotExist, exec.ErrNotFound, filepath.SkipDir, reflect.Bool,
		regexp.QuoteMeta, slices.Equal[[]int], sort.Ints, strconv.IntSize, strings.Fields, &sync.Mutex{}, template.HTMLEscapeString, time.Second,
	} {
		if imported == nil {
			t.Error("it is nil")
		}
	}
}
