// Prints each alert of a plant once: java -cp 'lib/*' Alerts.java localhost:9092
// lib/ has kafka-clients and slf4j-api, for example of a Kafka installation (its libs/).
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

class Alerts {
  public static void main(String[] args) {
    var settings = Map.<String, Object>of(
        "bootstrap.servers", args[0],
        "group.id", "print-alerts-java", // Kafka remembers how far this group has read
        "auto.offset.reset", "earliest",
        "isolation.level", "read_committed"); // the default is read_uncommitted
    var seen = new HashSet<String>(); // a program that runs for years forgets the oldest
    try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("tcm.alerts.v1"));
      while (true)
        for (var message : consumer.poll(Duration.ofSeconds(1))) {
          var headers = message.headers();
          var type = headers.lastHeader("ce_type");
          if (type != null && new String(type.value()).equals("io.tcm.alert.v1")
              && seen.add(new String(headers.lastHeader("ce_id").value())))
            System.out.println(message.value());
        }
    }
  }
}
