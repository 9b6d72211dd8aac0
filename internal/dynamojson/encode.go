package dynamojson

import "github.com/dynamill/dynamill/change"

// Encode returns what encoding/json writes as a value in DynamoDB's JSON.
func Encode(v change.Value) map[string]any {
	var content any
	switch v.Kind() {
	case change.KindBinary:
		content = []byte(v.Text())
	case change.KindBool:
		content = v.Bool()
	case change.KindNull:
		content = true
	case change.KindStringSet, change.KindNumberSet:
		content = listOf(v, change.Value.Text)
	case change.KindBinarySet:
		content = listOf(v, func(member change.Value) []byte { return []byte(member.Text()) })
	case change.KindList:
		content = listOf(v, Encode)
	case change.KindMap:
		fields := make(map[string]any, len(v.Map()))
		for name, field := range v.Map() {
			fields[name] = Encode(field)
		}
		content = fields
	default: // S and N; nothing absent is in an image
		content = v.Text()
	}
	return map[string]any{v.Kind().String(): content}
}

// EncodeImage returns what encoding/json writes as an image; nil for none.
func EncodeImage(image change.Image) map[string]any {
	if image == nil {
		return nil
	}
	fields := map[string]any{}
	for name, value := range image.All() {
		fields[name] = Encode(value)
	}
	return fields
}

func listOf[T any](v change.Value, f func(change.Value) T) []T {
	list := make([]T, 0, len(v.List()))
	for _, member := range v.List() {
		list = append(list, f(member))
	}
	return list
}
