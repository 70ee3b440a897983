//go:build gate

package house_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// chromium is the browser's program; Debian's package has the same name.
const chromium = "chromium-headless-shell"

// browsing runs what is to be done in a browser of its own that saves downloads to dir, and waits until one has been saved. do returns an error
// when no download can follow.
func browsing(ctx context.Context, dir string, do func(ctx context.Context) error) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(findTool(chromium)), chromedp.NoSandbox, chromedp.Flag("no-proxy-server", true))
	ctx, free := chromedp.NewExecAllocator(ctx, options...)
	defer free()
	ctx, end := chromedp.NewContext(ctx)
	defer end()
	progress := chromedp.BrowserEvents(ctx, browser.DownloadProgress)
	events := true
	_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, EventsEnabled: &events})
	if err != nil {
		return fmt.Errorf("cannot prepare the browser: %w", err)
	}
	if err := do(ctx); err != nil {
		return err
	}
	for event, err := range progress {
		switch {
		case err != nil:
			return fmt.Errorf("cannot follow the download: %w", err)
		case event.State == browser.DownloadProgressStateCompleted:
			return nil
		case event.State == browser.DownloadProgressStateCanceled:
			return fmt.Errorf("the download broke after %.0f of %.0f bytes", event.ReceivedBytes, event.TotalBytes)
		}
	}
	return fmt.Errorf("the browser ended: %w", ctx.Err())
}

// saveLink opens a page and clicks a link that saves a file, as from a list of releases.
func saveLink(ctx context.Context, address, id, dir string) error {
	return browsing(ctx, dir, func(ctx context.Context) error {
		err := chromedp.Do(ctx, chromedp.Navigate("http://"+address+"/"+id+".html"), chromedp.Evaluate[chromedp.Void](`document.getElementById("get").click()`))
		if err != nil {
			return fmt.Errorf("cannot click the link: %w", err)
		}
		return nil
	})
}

// navigate puts the file's address into the address bar. Whatever page comes instead may start the download by itself, but an answer for machines ends it.
func navigate(ctx context.Context, address, id, dir string) error {
	return browsing(ctx, dir, func(ctx context.Context) error {
		err := chromedp.Do(ctx, chromedp.Navigate("http://"+address+"/"+id+".bin"))
		if err != nil && strings.Contains(err.Error(), "net::ERR_ABORTED") {
			return nil // it became a download
		}
		if err != nil {
			return fmt.Errorf("cannot load: %w", err)
		}
		shown, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.contentType + " " + document.body.innerText`))
		if err != nil {
			return fmt.Errorf("cannot read the page: %w", err)
		}
		if !strings.HasPrefix(shown, "text/html ") {
			return fmt.Errorf("shown instead of a download: %s", shortened(shown))
		}
		return nil
	})
}
