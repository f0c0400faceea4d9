/** `POST /predict` and `POST /learn`: inputs from other programs, in the text formats of streams. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { InputAnswer, InputRequest } from '../../peer/index.js'
import { RefusedError } from '../failures.js'
import type { RouteOptions } from '../options.js'
import { failures, ref } from '../schemas/index.js'
import { jsonLines } from './json-lines.js'

/** Text formats by content type. */
const LINES: Readonly<Record<string, InputRequest['format']>> = {
  'application/x-ndjson': 'jsonl',
  'application/jsonl': 'jsonl',
  'application/json-lines': 'jsonl',
  'text/x-libsvm': 'libsvm',
  'text/x-vw': 'vw'
}

const SUMMARIES = {
  predict: 'Predicts inputs, whose labels may be missing',
  learn:
    'Predicts inputs, then learns them; if one of them is malformed, none is learned. With --label-delay also {"id": …, "label": …} for inputs that were predicted before'
} as const

/** The text of bodies in JSON. */
const documents = new WeakMap<FastifyRequest, Buffer>()

/** `POST /learn` returns predictions, so its role includes `predict`. */
const ROLES = { predict: ['predict', 'learn'], learn: ['learn'] } as const

export async function inputRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  // The type of a form, which browsers send across origins without a preflight request.
  app.removeContentTypeParser('text/plain')
  // Parsed JSON is only checked: the values that are read are those of the text.
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const document = body as Buffer
    void parse(request, document.toString('utf8'), (error, value) => {
      if (error === null) documents.set(request, document)
      done(error, value)
    })
  })
  app.addContentTypeParser(Object.keys(LINES), { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  const json = { anyOf: [ref('Input'), { type: 'array', minItems: 1, items: ref('Input') }] }
  const lines = (type: string) => [type, { schema: { contentMediaType: type } }]
  const content = { 'application/json': { schema: json }, ...Object.fromEntries(Object.keys(LINES).map(lines)) }
  const response = { 200: { description: 'The predictions', ...ref('Predictions') }, ...failures }
  for (const action of ['predict', 'learn'] as const) {
    const schema = { summary: SUMMARIES[action], body: { content }, response }
    app.post(`/${action}`, { config: { roles: ROLES[action] }, schema }, async request => {
      const answer = await peer.request({ action, ...inputsOf(request) })
      refuseLateLabels(answer)
      return answer
    })
  }
}

/** If nothing could be learned, the request has failed. */
function refuseLateLabels({ predictions }: InputAnswer): void {
  const [first] = predictions
  if (!('error' in first) || first.code === undefined || !predictions.every(answer => 'error' in answer)) return
  throw new RefusedError(first.code === 'ERR_LABEL_LATE' ? 410 : 400, first.code, first.error)
}

function inputsOf(request: FastifyRequest): Pick<InputRequest, 'format' | 'body'> {
  const { body, headers } = request
  const document = documents.get(request)
  if (document !== undefined) return { format: 'jsonl', body: jsonLines(document) }
  const type = headers['content-type']?.split(';')[0].trim().toLowerCase() ?? ''
  return { format: LINES[type], body: body as Buffer }
}
