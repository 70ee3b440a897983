package config

import "testing"

// TestX2_L2_FedClientsLeaveConnectionsToOthers: the default follows the connections there are; a given limit is the operator's, who is warned.
func TestX2_L2_FedClientsLeaveConnectionsToOthers(t *testing.T) {
	for _, c := range []struct {
		environ     []string
		limit, warn int
	}{
		{nil, 4096, 0},
		{[]string{"ARKVORY_MAX_CONNECTIONS=8192"}, 4096, 0},
		{[]string{"ARKVORY_MAX_CONNECTIONS=1000"}, 500, 0},
		{[]string{"ARKVORY_MAX_CONNECTIONS=1"}, 0, 0},
		{[]string{"ARKVORY_MAX_CONNECTIONS=1000", "ARKVORY_DOWNLOAD_DRIP_LIMIT=500"}, 500, 0},
		{[]string{"ARKVORY_MAX_CONNECTIONS=1000", "ARKVORY_DOWNLOAD_DRIP_LIMIT=501"}, 501, 1},
	} {
		got, warnings := mustLoad(t, c.environ...)
		about := 0
		for _, w := range warnings {
			if w.Variable == "ARKVORY_DOWNLOAD_DRIP_LIMIT" {
				about++
			}
		}
		if got.DownloadDripLimit != c.limit || about != c.warn {
			t.Errorf("%q: %d, warnings %v", c.environ, got.DownloadDripLimit, warnings)
		}
	}
}
