package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is where changes of the settings are told.
const channel = "arkvory_download_settings"

// Pauses between two tries to listen.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Watch calls wake at each notification of a change, and once after each connection that it makes, since what happened before was not heard. It returns when ctx ended or
// the store was closed. It needs a connection of its own, outside the pool. Behind a pooler that shares connections between transactions nothing is heard: then it is the
// caller's polling that finds the change.
func (p *Postgres) Watch(ctx context.Context, wake func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		if p.listen(ctx, wake) {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// listen listens until the connection breaks, and reports whether there was one.
func (p *Postgres) listen(ctx context.Context, wake func()) bool {
	conn, err := pgx.ConnectConfig(ctx, p.pool.Config().ConnConfig)
	if err != nil {
		return false
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = conn.Close(last)
	}()
	bounded, cancel := context.WithTimeout(ctx, dialTime)
	_, err = conn.Exec(bounded, "LISTEN "+channel)
	cancel()
	if err != nil {
		return false
	}
	for {
		wake()
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return true
		}
	}
}
