/** `POST /predict` and `POST /learn`: inputs from programs that do not speak libp2p. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type InputRequest, RequestError } from '../../peer/index.js'
import type { RouteOptions } from '../options.js'

const LINES = ['application/jsonl', 'application/x-ndjson', 'application/json-lines']

export async function inputRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  app.addContentTypeParser([...LINES], { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  for (const action of ['predict', 'learn'] as const) {
    app.post(`/${action}`, request => peer.request({ action, format: 'jsonl', body: linesOf(request) }))
  }
}

/** The inputs of a request as JSON lines: an object, an array of objects, or lines. Throws RequestError. */
function linesOf({ body }: FastifyRequest): InputRequest['body'] {
  if (Buffer.isBuffer(body)) return body
  const inputs = Array.isArray(body) ? body : [body]
  if (inputs.length === 0 || inputs.some(input => typeof input !== 'object' || input === null)) {
    throw new RequestError(
      'send an input as a JSON object, such as {"features": {"3": 0.5}}, an array of them, or JSON lines'
    )
  }
  return Buffer.from(inputs.map(input => `${JSON.stringify(input)}\n`).join(''))
}
