package lambdatest

var binaryFolder string
