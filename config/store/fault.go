package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/arkvory/sidecar/config"
)

var errClosed = errors.New("the store is closed")

// judge refuses a record that a store cannot give back as it was.
func judge(next config.Record) error {
	refuse := func(why string) error { return &config.StoreError{Verb: "save", Why: why} }
	switch text := next.Overrides; {
	case len(text) > config.MaxOverridesBytes:
		return &config.StoreError{Verb: "save", Why: fmt.Sprintf("they have %d bytes, the limit is %d", len(text), config.MaxOverridesBytes), Err: config.ErrOverridesSize}
	case len(text) > 0 && (!json.Valid(text) || !utf8.Valid(text) || text[0] != '{' || text[len(text)-1] != '}'):
		return refuse("they are no JSON object")
	case len(next.UpdatedBy) > maxBy || !utf8.ValidString(next.UpdatedBy) || strings.ContainsRune(next.UpdatedBy, 0):
		return refuse("who changed them is no text of at most 256 bytes")
	}
	return nil
}

const maxBy = 256

// fault words an error of the database without a text of the driver or the server: those name hosts, accounts and databases.
func fault(ctx context.Context, verb, table string, err error) error {
	what := &config.StoreError{Verb: verb, Err: ctx.Err()}
	var known *config.StoreError
	switch {
	case errors.As(err, &known):
		return known
	case code(err) != "":
		what.Why = refusal(code(err), table)
	case errors.Is(err, errClosed):
		what.Why = "the store is closed"
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		what.Why = "the request was given up"
	default:
		what.Why = unreachable(err)
	}
	return what
}

// code is the SQLSTATE of an error of the server, "" of others.
func code(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// missing reports that a table is not there.
func missing(err error) bool { return code(err) == "42P01" }

// stale reports that a connection was dead before it was of use: nothing was carried out, or it was a read.
func stale(err error) bool {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case pgconn.SafeToRetry(err):
		return true
	}
	return code(err) == "57P01" || code(err) == "57P02" // told, when the server ended, on a connection that idled
}

// refusal words what a server answers, by its SQLSTATE.
func refusal(code, table string) string {
	why := "the database refuses it"
	switch code {
	case "42501":
		why = "the account of ARKVORY_DATABASE_URL has not the rights: grant it SELECT, INSERT and UPDATE on " + table + ", or let it make tables in the schema"
	case "42P01", "3F000":
		why = "table " + table + " is missing and cannot be made: let the account make tables in the schema, or make it by the migrations of this version"
	case "42703", "42804":
		why = "table " + table + " is that of another version and does not fit this one"
	case "28P01", "28000":
		why = "the database does not accept the account of ARKVORY_DATABASE_URL or its password"
	case "3D000":
		why = "the database that ARKVORY_DATABASE_URL names does not exist"
	case "53300":
		why = "the database has no connection left"
	case "57P01", "57P02", "57P03":
		why = "the database is stopping or starting"
	case "57014", "55P03":
		why = "the database did not finish it in time; another change holds the row, perhaps"
	case "25006":
		why = "the database is read-only: a standby, perhaps; add target_session_attrs=read-write to ARKVORY_DATABASE_URL"
	case "53100", "53200":
		why = "the database is out of space or memory"
	}
	return why + " (SQLSTATE " + code + ")"
}

// unreachable words why nobody answered.
func unreachable(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	const cannot = "the database cannot be reached: "
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the database does not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return cannot + "connection refused"
	case errors.Is(err, syscall.ENOENT):
		return cannot + "its socket is not there"
	case errors.Is(err, syscall.EACCES):
		return cannot + "its socket may not be used"
	case errors.As(err, &dns):
		return cannot + "its host name is not known"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return cannot + "there is no way to its host"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, pgconn.ErrConnClosed):
		return "the connection to the database broke"
	case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "x509:"):
		return cannot + "TLS does not fit: see sslmode and sslrootcert of ARKVORY_DATABASE_URL"
	}
	return "the database does not answer"
}
