package dynamosim

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// fingerprint writes any request as a text that is equal for equal requests only.
func fingerprint(v any) string {
	var b strings.Builder
	writeValue(&b, reflect.ValueOf(v))
	return b.String()
}

func writeValue(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		fmt.Fprintf(b, "%s:", v.Elem().Type().Name())
		writeValue(b, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fmt.Fprintf(b, "%s{", f.Name)
				writeValue(b, v.Field(i))
				b.WriteByte('}')
			}
		}
	case reflect.Slice:
		fmt.Fprintf(b, "%d[", v.Len())
		for i := range v.Len() {
			writeValue(b, v.Index(i))
			b.WriteByte(',')
		}
	case reflect.Map:
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
		fmt.Fprintf(b, "%d{", len(keys))
		for _, k := range keys {
			fmt.Fprintf(b, "%q=", k.String())
			writeValue(b, v.MapIndex(k))
			b.WriteByte(',')
		}
	default:
		fmt.Fprintf(b, "%q", fmt.Sprint(v.Interface()))
	}
}
