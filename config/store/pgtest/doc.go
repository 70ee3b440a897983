// Package pgtest gives tests a real PostgreSQL that lives as long as they do.
//
// # Model
//
// A [Cluster] is a data directory in a temporary folder and at most one server over it. The server listens on a Unix socket in that folder and nowhere
// else, so clusters of several test binaries never meet. It runs with fsync off: what a kill -9 of the server loses is what the operating system loses,
// which is nothing.
//
//	running --Stop, Kill--> stopped --Start--> running --Pause--> paused --Resume--> running
//
// [Shared] is one cluster for all tests of a binary that leave it alone; each takes its own [Cluster.Database]. [Start] is a cluster of one test, which may
// stop, kill and freeze it.
//
// # Programs
//
// initdb, postgres and psql are looked for in PATH, then under /usr/lib/postgresql/*/bin, the newest first. Without them a test fails and says which package is
// missing: a test that silently does not run proves nothing. PostgreSQL refuses to run as root, so under root its programs run as the account postgres, or nobody.
//
// # Nothing is left behind
//
// [Main] ends the shared cluster, the cleanup of a test its own one. A test binary that panics, meets its time limit or is killed runs neither: a guardian, a
// small shell in a session of its own, holds the reading end of a pipe whose writing end only the test binary has. When that closes, however that came, the
// guardian ends the server by its process id, wakes what was frozen so that it can end, and removes the folder.
//
// # Decisions
//
//   - The server is a child of the test binary, not started by pg_ctl: its process id is known and its end is seen.
//   - Pause stops the server and all its processes, since a backend of a stopped postmaster still answers. Rejected: a proxy that swallows bytes, which shows
//     less than a frozen machine does.
//   - That the server is ready is read from its log. Rejected: asking it until it answers, which needs a clock and a client.
//   - No PostgreSQL driver is imported: rooms that may not import one can use this package in their tests.
//
// The package is for tests only and nothing shipped imports it.
package pgtest
