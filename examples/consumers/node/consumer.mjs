// Prints each alert of a plant once: node consumer.mjs localhost:9092
import { Kafka, logLevel } from 'kafkajs'

const kafka = new Kafka({ clientId: 'print-alerts', brokers: [process.argv[2]], logLevel: logLevel.ERROR })
const consumer = kafka.consumer({
  groupId: 'print-alerts-node', // Kafka remembers how far this group has read
  readUncommitted: false, // the default
})
const seen = new Set() // a program that runs for years forgets the oldest

await consumer.connect()
await consumer.subscribe({ topics: ['tcm.alerts.v1'], fromBeginning: true })
await consumer.run({
  eachMessage: async ({ message }) => {
    const id = message.headers.ce_id?.toString()
    if (message.headers.ce_type?.toString() === 'io.tcm.alert.v1' && !seen.has(id)) {
      seen.add(id)
      console.log(message.value.toString())
    }
  },
})
