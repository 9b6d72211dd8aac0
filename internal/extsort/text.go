package extsort

// AppendText appends a text so that the result sorts as the texts do, whatever follows.
func AppendText(to []byte, text string) []byte {
	for i := range len(text) {
		if to = append(to, text[i]); text[i] == 0 {
			to = append(to, 0xff)
		}
	}
	return append(to, 0, 1)
}

// CutText reads what AppendText wrote, and returns what follows it.
func CutText(from []byte) (text string, rest []byte, ok bool) {
	var out []byte
	for i := 0; i+1 < len(from); i++ {
		if from[i] != 0 {
			out = append(out, from[i])
			continue
		}
		if from[i+1] == 1 {
			return string(out), from[i+2:], true
		}
		out = append(out, 0)
		i++
	}
	return "", nil, false
}
