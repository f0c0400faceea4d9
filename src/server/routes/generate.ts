/** `POST /generate`: continues a text with the serving predictor, as server-sent events. */
import type { FastifyInstance } from 'fastify'
import type { GenerateRequest } from '../../peer/index.js'
import { RefusedError } from '../failures.js'
import type { RouteOptions } from '../options.js'
import { failures } from '../schemas/index.js'

const BODY = {
  type: 'object',
  properties: {
    prompt: { type: 'string', minLength: 1, description: 'The text to continue.' },
    tokens: { type: 'integer', minimum: 1, maximum: 4096, description: 'Largest number of tokens, by default 100.' },
    temperature: {
      type: 'number',
      minimum: 0,
      description: 'Divides the logits; 0: the most probable token. By default 1.'
    },
    topK: { type: 'integer', minimum: 1, description: 'Draws from this many most probable tokens. By default all.' },
    topP: {
      type: 'number',
      minimum: 0,
      maximum: 1,
      description: 'Draws from the fewest most probable tokens with this probability. By default all.'
    },
    seed: { type: 'integer', minimum: 0, description: 'Of the draws, by default 1.' }
  },
  required: ['prompt'],
  additionalProperties: false
} as const

const STREAM = 'text/event-stream'
const EVENTS =
  'Events "piece" with {token, text}, then "end" with {text, tokens, finish, predictor}, or "error" with {error, code}'
const REMEDY = 'send a JSON object such as {"prompt": "To be, or", "tokens": 50}'

export async function generateRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  const schema = {
    summary: 'Continues a text, for a language model',
    body: BODY,
    response: { 200: { description: EVENTS, content: { [STREAM]: { schema: { type: 'string' } } } }, ...failures }
  }
  const config = { roles: ['predict', 'learn'] } as const
  app.post<{ Body: GenerateRequest }>(
    '/generate',
    { config, schema, attachValidation: true },
    async (request, reply) => {
      const { validationError: invalid } = request
      if (invalid !== undefined) throw new RefusedError(400, 'ERR_REQUEST', invalid.message, REMEDY)
      const left = new AbortController()
      reply.raw.on('close', () => left.abort())
      const write = (event: string, data: object) => {
        if (!reply.raw.headersSent) {
          reply.hijack()
          // Headers set by the guards apply to this answer too.
          for (const [name, value] of Object.entries(reply.getHeaders())) {
            if (value !== undefined) reply.raw.setHeader(name, value)
          }
          const headers = { 'content-type': `${STREAM}; charset=utf-8`, 'cache-control': 'no-store' }
          // The second header prevents nginx from buffering events.
          reply.raw.writeHead(200, { ...headers, 'x-accel-buffering': 'no' })
        }
        reply.raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
      }
      try {
        const end = await peer.generate(request.body, piece => write('piece', piece), left.signal)
        write('end', end)
      } catch (error) {
        // Before the first piece, the answer is a failure as of other routes.
        if (!reply.raw.headersSent) throw error
        const { message, code } = error as Error & { readonly code?: string }
        write('error', { error: message, code: code ?? 'ERR_INTERNAL' })
      }
      reply.raw.end()
      return reply
    }
  )
}
