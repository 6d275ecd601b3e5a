// Calls the handlers of Grafana's OpenTSDB data source, of whose source test_grafana.py makes this a part.
//
// Reads a request in JSON from each line of the standard input, and writes the answer as a line: that of a
// query as Grafana's browser side would get it, that of a health check and of a resource by their fields.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"
	"time"

	"github.com/grafana/grafana-opentsdb-datasource/pkg/opentsdb"
	"github.com/grafana/grafana-plugin-sdk-go/backend"
)

type request struct {
	Settings struct {
		URL      string            `json:"url"`
		JSON     json.RawMessage   `json:"json"`
		User     string            `json:"user"`
		Secrets  map[string]string `json:"secrets"`
		UsesUser bool              `json:"usesUser"`
	} `json:"settings"`
	Call     string `json:"call"`
	Resource string `json:"resource"`
	Queries  []struct {
		RefID      string          `json:"refId"`
		FromMs     int64           `json:"fromMs"`
		ToMs       int64           `json:"toMs"`
		IntervalMs int64           `json:"intervalMs"`
		Model      json.RawMessage `json:"model"`
	} `json:"queries"`
}

type resource struct {
	Status  int                 `json:"status"`
	Headers map[string][]string `json:"headers"`
	Body    string              `json:"body"`
}

// One for each form of the settings, as Grafana keeps them.
type sources map[string]*opentsdb.DataSource

func (all sources) of(ctx context.Context, asked request) (*opentsdb.DataSource, error) {
	key, err := json.Marshal(asked.Settings)
	if err != nil {
		return nil, err
	}
	if found := all[string(key)]; found != nil {
		return found, nil
	}
	made, err := opentsdb.NewDatasource(ctx, backend.DataSourceInstanceSettings{
		URL:                     asked.Settings.URL,
		JSONData:                asked.Settings.JSON,
		BasicAuthEnabled:        asked.Settings.UsesUser,
		BasicAuthUser:           asked.Settings.User,
		DecryptedSecureJSONData: asked.Settings.Secrets,
	})
	if err != nil {
		return nil, err
	}
	all[string(key)] = made.(*opentsdb.DataSource)
	return all[string(key)], nil
}

func answer(ctx context.Context, source *opentsdb.DataSource, asked request) (any, error) {
	switch asked.Call {
	case "health":
		return source.CheckHealth(ctx, &backend.CheckHealthRequest{})
	case "resource":
		var got resource
		path, _, _ := strings.Cut(asked.Resource, "?")
		err := source.CallResource(ctx,
			&backend.CallResourceRequest{Path: path, Method: "GET", URL: asked.Resource},
			backend.CallResourceResponseSenderFunc(func(sent *backend.CallResourceResponse) error {
				got.Status, got.Headers = sent.Status, sent.Headers
				got.Body += string(sent.Body)
				return nil
			}))
		return got, err
	}
	query := &backend.QueryDataRequest{}
	for _, one := range asked.Queries {
		query.Queries = append(query.Queries, backend.DataQuery{
			RefID:     one.RefID,
			Interval:  time.Duration(one.IntervalMs) * time.Millisecond,
			TimeRange: backend.TimeRange{From: time.UnixMilli(one.FromMs), To: time.UnixMilli(one.ToMs)},
			JSON:      one.Model,
		})
	}
	return source.QueryData(ctx, query)
}

func main() {
	ctx := context.Background()
	all := sources{}
	lines := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			log.Fatal(err)
		}
		source, err := all.of(ctx, asked)
		if err != nil {
			log.Fatal(err)
		}
		got, err := answer(ctx, source, asked)
		if err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(got); err != nil {
			log.Fatal(err)
		}
	}
}
