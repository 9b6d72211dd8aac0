package environment

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
)

// TestConnectThatIsStoppedSaysSo ends the context while credentials are looked up: they are not what is missing.
func TestConnectThatIsStoppedSaysSo(t *testing.T) {
	stopped := errors.New("stopped")
	for _, endpoint := range []string{"", "http://127.0.0.1:1"} {
		ctx, stop := context.WithCancelCause(t.Context())
		stop(stopped)
		_, err := Connect(ctx, &settings.Settings{Endpoint: endpoint, Region: "eu-west-1"}, "app", slog.New(slog.DiscardHandler))
		if !errors.Is(err, stopped) {
			t.Errorf("with the endpoint %q it ends with %v", endpoint, err)
		}
	}
}
