import io.cloudevents.CloudEvent;
import io.cloudevents.kafka.CloudEventDeserializer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

class Events {
  public static void main(String[] args) {
    var settings = Map.<String, Object>of(
        "bootstrap.servers", args[0], "group.id", "cloudevents-java",
        "auto.offset.reset", "earliest", "isolation.level", "read_committed");
    try (var consumer = new KafkaConsumer<String, CloudEvent>(settings, new StringDeserializer(), new CloudEventDeserializer())) {
      consumer.subscribe(List.of("tcm.alerts.v1"));
      while (true)
        for (var message : consumer.poll(Duration.ofSeconds(1))) {
          var event = message.value();
          System.out.println(event.getType() + " " + event.getSource() + " " + event.getDataContentType() + " " + new String(event.getData().toBytes()));
        }
    }
  }
}
