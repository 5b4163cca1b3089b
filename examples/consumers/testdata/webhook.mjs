import { createServer } from 'node:http'
import { HTTP } from 'cloudevents'

const server = createServer(async (request, response) => {
  const parts = []
  for await (const part of request) parts.push(part)
  const event = HTTP.toEvent({ headers: request.headers, body: Buffer.concat(parts).toString() })
  event.validate()
  console.log(event.id, event.type, event.source, event.datacontenttype, JSON.stringify(event.data))
  response.writeHead(204).end()
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
