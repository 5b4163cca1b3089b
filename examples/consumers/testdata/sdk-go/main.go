// Command sdk-go prints the events that the SDK of CloudEvents for Go reads: of a broker of Kafka, whose address is its
// argument, or without one of HTTP requests, after the URL that takes them.
package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/client"
)

func main() {
	var err error
	if len(os.Args) > 1 {
		err = readKafka(os.Args[1])
	} else {
		err = readHTTP()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func show(e cloudevents.Event) error {
	fmt.Println(e.Type(), e.Source(), e.DataContentType(), string(e.Data()))
	return e.Validate()
}

func showID(e cloudevents.Event) error {
	fmt.Print(e.ID(), " ")
	return show(e)
}

func readKafka(broker string) error {
	config := sarama.NewConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	consumer, err := kafka_sarama.NewConsumer([]string{broker}, config, "cloudevents-go", "tcm.alerts.v1")
	if err != nil {
		return err
	}
	c, err := cloudevents.NewClient(consumer, client.WithPollGoroutines(1), client.WithBlockingCallback()) // else events come out of order
	if err != nil {
		return err
	}
	return c.StartReceiver(context.Background(), show)
}

func readHTTP() error {
	binding, err := cloudevents.NewHTTP()
	if err != nil {
		return err
	}
	handler, err := cloudevents.NewHTTPReceiveHandler(context.Background(), binding, showID)
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	fmt.Println(server.URL)
	select {}
}
