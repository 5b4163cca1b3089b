import { Kafka as Binding } from 'cloudevents'
import { Kafka, logLevel } from 'kafkajs'

const consumer = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.ERROR }).consumer({ groupId: 'cloudevents-node' })
await consumer.connect()
await consumer.subscribe({ topics: ['tcm.alerts.v1'], fromBeginning: true })
await consumer.run({
  eachMessage: async ({ message }) => {
    const headers = Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, value.toString()]))
    const event = Binding.toEvent({ headers, key: message.key.toString(), value: message.value.toString() })
    event.validate()
    console.log(event.type, event.source, event.datacontenttype, JSON.stringify(event.data))
  },
})
