// Command arkvory-sidecar puts a queueing, pacing reverse proxy in front of a store. It is configured by environment variables; see the README.
//
// This file is the composition root: configuration, wiring, serving, draining. Exit codes: 0 after a clean stop, 1 when it cannot start or serve, 2 for wrong
// arguments or configuration.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/admin/console"
	"github.com/arkvory/sidecar/proxy/demo"
)

// version is set by the build.
var version = "dev"

func main() {
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

func run(args, environ []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("arkvory-sidecar", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check-config", false, "print the effective settings and exit: 0 when they can be used, 2 when not")
	show := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "unexpected argument %q: settings are environment variables, for example ARKVORY_UPSTREAM=http://127.0.0.1:9000\n", flags.Arg(0))
		return 2
	}
	if *show {
		fmt.Fprintln(stdout, version)
		return 0
	}
	cfg, warnings, err := config.Load(environ)
	if err != nil {
		for _, w := range warnings {
			fmt.Fprintln(stderr, "warning:", w)
		}
		fmt.Fprintln(stderr, errors.Join(err, checkFiles(filesIn(environ))))
		return 2
	}
	if *check {
		for _, w := range warnings {
			fmt.Fprintln(stderr, "warning:", w)
		}
		if err := checkFiles(cfg); err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
		cfg.Print(stdout)
		return 0
	}
	log := newLogger(cfg, stderr)
	for _, w := range warnings {
		log.Warn().Str("variable", w.Variable).Msg(w.Text)
	}
	if err := serve(cfg, log); err != nil {
		log.Error().Err(err).Msg("stopped")
		return 1
	}
	return 0
}

// checkFiles parses the files of rules and returns all their faults.
func checkFiles(cfg config.Config) error {
	return proxy.CheckFiles(proxy.Settings{Identity: identitySettings(cfg), ClientsFile: cfg.ClientsFile})
}

// filesIn is a configuration of nothing but the files of rules that can be read: beside a fault elsewhere theirs are told too, so that one look finds everything.
func filesIn(environ []string) config.Config {
	var cfg config.Config
	for _, assignment := range environ {
		name, path, _ := strings.Cut(assignment, "=")
		one := map[string]*string{"ARKVORY_PRINCIPALS_FILE": &cfg.PrincipalsFile, "ARKVORY_CLIENTS_FILE": &cfg.ClientsFile}[name]
		if one == nil {
			continue
		}
		*one = path
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			*one = "" // a fault of its variable, and told as such
		}
	}
	return cfg
}

// newLogger writes JSON lines, or pretty ones on a terminal.
func newLogger(cfg config.Config, w io.Writer) zerolog.Logger {
	pretty := cfg.LogFormat == "pretty"
	if f, ok := w.(*os.File); ok && cfg.LogFormat == "auto" {
		if st, err := f.Stat(); err == nil {
			pretty = st.Mode()&os.ModeCharDevice != 0
		}
	}
	if pretty {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly}
	}
	level, err := zerolog.ParseLevel(cfg.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// collectAt is the growth of the heap, in percent, at which it is collected unless GOGC says another: what is allocated in a second is little beside what
// many waiting clients keep, so that more collections cost less than room for garbage.
const collectAt = 50

// serve runs until a stop signal has been carried out.
func serve(cfg config.Config, log zerolog.Logger) error {
	start := time.Now()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if len(cfg.Upstream) == 0 {
		origin, err := demo.Start()
		if err != nil {
			return fmt.Errorf("cannot start the demo origin: %w", err)
		}
		defer origin.Close()
		u, err := url.Parse(origin.URL())
		if err != nil {
			return fmt.Errorf("cannot use the demo origin: %w", err)
		}
		cfg.Upstream = config.Origins{u}
		log.Info().Str("origin", origin.URL()).Msg("ARKVORY_UPSTREAM is unset: serving the built-in demo origin; try /hello.txt, /release.tar, /image.bin")
	}
	set, reload, err := settings(cfg, log)
	if err != nil {
		return err
	}
	set.Version = version
	if err := openTickets(cfg, &set, log); err != nil {
		return err
	}
	decisions, closeDecisions, err := openDecisions(cfg.DecisionLog)
	if err != nil {
		return err
	}
	set.Decisions = decisions
	defer func() {
		if err := closeDecisions(); err != nil {
			log.Error().Err(err).Str("variable", "ARKVORY_DECISION_LOG").Msg("the end of the decision log may be lost")
		}
	}()
	p, err := proxy.New(set)
	if err != nil {
		return err
	}
	ln, err := listen("ARKVORY_LISTEN", cfg.Listen)
	if err != nil {
		return errors.Join(err, p.Shutdown(context.Background()))
	}
	adminLn, err := listen("ARKVORY_ADMIN_LISTEN", cfg.AdminListen)
	if err != nil {
		_ = ln.Close()
		return errors.Join(err, p.Shutdown(context.Background()))
	}
	desk := admin.New(admin.Settings{Token: cfg.AdminToken.Reveal(), Version: version, OnPanic: p.ReportPanic, Audit: p.Audit, Console: console.Asset}, p.Sources(start))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	failed := make(chan error, 2)
	go func() { failed <- p.Serve(ln) }()
	go func() { failed <- desk.Serve(adminLn) }()
	stopReload := reload()
	defer stopReload()
	reinit := make(chan os.Signal, 1)
	signal.Notify(reinit, syscall.SIGHUP)
	hup := make(chan struct{})
	defer close(hup)
	defer signal.Stop(reinit)
	go func() {
		for {
			select {
			case <-reinit:
			case <-hup:
				return
			}
			if err := p.Reinit(); err != nil {
				log.Warn().Err(err).Msg("SIGHUP: what was read before stays")
			}
			log.Info().Msg("SIGHUP: new connections to the upstream")
		}
	}()
	log.Info().Str("listen", ln.Addr().String()).Str("admin", adminLn.Addr().String()).Stringer("upstream", cfg.Upstream).
		Str("version", version).Msg("serving")
	select {
	case err := <-failed:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return errors.Join(err, p.Shutdown(ctx), desk.Shutdown(ctx))
	case s := <-signals:
		log.Info().Str("signal", s.String()).Dur("deadlineMs", cfg.Drain).Msg("draining")
	}
	return drain(cfg, p, desk, signals, log)
}

func listen(variable, address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s=%s: %w", variable, address, err)
	}
	return ln, nil
}

// minDrain is how long a drain lasts at least, within its deadline: probes and balancers must have seen the 503 before connections are refused.
const minDrain = 2 * time.Second

var errSecondSignal = errors.New("a second signal came")

// drain carries out a stop: no admission, running transfers go on up to the deadline, readiness says so all the time. A second signal ends at once.
func drain(cfg config.Config, p *proxy.Proxy, desk *admin.Server, signals <-chan os.Signal, log zerolog.Logger) error {
	bounded, stop := context.WithTimeout(context.Background(), cfg.Drain)
	defer stop()
	ctx, cancel := context.WithCancelCause(bounded)
	defer cancel(nil)
	go func() {
		select {
		case <-signals:
			log.Warn().Msg("second signal: ending at once")
			cancel(errSecondSignal)
		case <-ctx.Done():
		}
	}()
	began := time.Now()
	p.StartDrain()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for idle := 0; (idle < 3 || time.Since(began) < minDrain) && ctx.Err() == nil; {
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
		if idle++; p.Working() > 0 {
			idle = 0
		}
	}
	until := ctx
	if p.Working() == 0 { // nothing is left to cut, whatever the deadline says
		idle, end := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer end()
		until = idle
	}
	cut := p.Shutdown(until)
	last, release := context.WithTimeout(context.Background(), time.Second)
	defer release()
	err := desk.Shutdown(last)
	switch {
	case cut == nil:
	case errors.Is(context.Cause(ctx), errSecondSignal):
		log.Warn().Msg("a second signal came: running transfers were cut")
	default:
		log.Warn().Msg("the deadline passed: running transfers were cut")
	}
	log.Info().Msg("stopped")
	return err
}
