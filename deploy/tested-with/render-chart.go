// render-chart CHART NAMESPACE VALUES: prints what `helm template sluicegate CHART --namespace NAMESPACE --values VALUES` prints. Helm itself is
// neither in Debian nor on npm. Its templates are those of Go with the functions of sprig and the few below, so this renders as Helm does;
// hooks, subcharts and lookups are left out.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := render(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart, namespace, valuesFile string) error {
	var about struct{ Name, Version, AppVersion string }
	if err := read(filepath.Join(chart, "Chart.yaml"), &about); err != nil {
		return err
	}
	values := map[string]any{}
	for _, file := range []string{filepath.Join(chart, "values.yaml"), valuesFile} {
		given := map[string]any{}
		if err := read(file, &given); err != nil {
			return err
		}
		merge(values, given)
	}
	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value any) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	functions["include"] = func(name string, data any) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["required"] = func(message string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := all.New(filepath.Base(file)).Parse(string(text)); err != nil {
			return err
		}
	}
	data := map[string]any{
		"Values":  values,
		"Chart":   map[string]any{"Name": about.Name, "Version": about.Version, "AppVersion": about.AppVersion},
		"Release": map[string]any{"Name": "sluicegate", "Namespace": namespace, "Service": "Helm"},
	}
	for _, file := range files {
		name := filepath.Base(file)
		var text strings.Builder
		if err := all.ExecuteTemplate(&text, name, data); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text.String()) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", name, text.String())
		}
	}
	return nil
}

func read(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}

// merge puts given values over the defaults, maps by their keys.
func merge(over, given map[string]any) {
	for key, value := range given {
		inner, isMap := value.(map[string]any)
		before, wasMap := over[key].(map[string]any)
		if isMap && wasMap {
			merge(before, inner)
		} else {
			over[key] = value
		}
	}
}
