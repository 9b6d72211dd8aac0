package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// initError is what Lambda's runtime API takes (Lambda developer guide, "Using the Lambda runtime API").
type initError struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

const (
	initErrorType   = "dynamill.Init"
	initErrorHeader = "Lambda-Runtime-Function-Error-Type"
	reportTimeout   = time.Second // Lambda is on this machine
)

// reportInit tells Lambda why there will be no first invocation; aws-lambda-go knows of invocations only.
func reportInit(runtimeAPI string, failure error) error {
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	body, err := json.Marshal(initError{failure.Error(), initErrorType})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+runtimeAPI+"/2018-06-01/runtime/init/error",
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(initErrorHeader, initErrorType)
	client := &http.Client{Transport: &http.Transport{}} // no proxy
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the runtime API of Lambda answered %s", response.Status)
	}
	return nil
}
