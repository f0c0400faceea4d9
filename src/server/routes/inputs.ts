/** `POST /predict` and `POST /learn`: inputs from other programs, in the text formats of streams. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { delimiterNames } from '../../data/index.js'
import type { InputAnswer, InputRequest } from '../../peer/index.js'
import { RefusedError } from '../failures.js'
import type { RouteOptions } from '../options.js'
import { failures, ref } from '../schemas.js'

/** Text formats by content type. */
const LINES: Readonly<Record<string, InputRequest['format']>> = {
  'application/x-ndjson': 'jsonl',
  'application/jsonl': 'jsonl',
  'application/json-lines': 'jsonl',
  'text/x-libsvm': 'libsvm',
  'text/x-vw': 'vw',
  'text/csv': 'csv'
}

const SUMMARIES = {
  predict: 'Predicts inputs, whose labels may be missing',
  learn:
    'Predicts inputs, then learns them; if one of them is malformed, none is learned. With --label-delay also {"id": …, "label": …} for inputs that were predicted before'
} as const

const KEY = {
  type: 'string',
  pattern: '^("[!#-~]{1,128}"|[!#-~]{1,128})$',
  description: 'Identifies the request: the inputs of a repeated one are not learned again'
}

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
    const headers = action === 'learn' ? { headers: { type: 'object', properties: { 'idempotency-key': KEY } } } : {}
    const schema = { summary: SUMMARIES[action], ...headers, body: { content }, response }
    app.post(`/${action}`, { config: { roles: ROLES[action] }, schema }, async request => {
      const answer = await peer.request({ action, ...inputsOf(request), key: keyOf(request) })
      refuseLateLabels(answer)
      return answer
    })
  }
}

/** The separator in the parameters of a content type, such as `delimiter=semicolon`. */
function delimiterIn(parameters: readonly string[]): InputRequest['delimiter'] {
  const given = parameters
    .find(one => one.trim().startsWith('delimiter='))
    ?.split('=')[1]
    .trim()
  if (given === undefined) return undefined
  const found = delimiterNames[given]
  if (found === undefined)
    throw new RefusedError(
      415,
      'ERR_MEDIA_TYPE',
      `the delimiter ${given} is unknown: give comma, semicolon, tab or pipe`
    )
  return found
}

/** The header may be a quoted string, as its draft standard has it. */
function keyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key'] as string | undefined
  return key?.replace(/^"(.*)"$/, '$1')
}

/** If nothing could be learned, the request has failed. */
function refuseLateLabels({ predictions }: InputAnswer): void {
  const [first] = predictions
  if (
    first === undefined ||
    !('error' in first) ||
    first.code === undefined ||
    !predictions.every(answer => 'error' in answer)
  )
    return
  throw new RefusedError(first.code === 'ERR_LABEL_LATE' ? 410 : 400, first.code, first.error)
}

function inputsOf(request: FastifyRequest): Pick<InputRequest, 'format' | 'body' | 'delimiter'> {
  const { body, headers } = request
  const document = documents.get(request)
  if (document !== undefined) return { format: 'jsonl', body: jsonLines(document) }
  const [type, ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
  return { format: LINES[type.trim()], body: body as Buffer, delimiter: delimiterIn(parameters) }
}

/** Divides a JSON document of inputs into lines without reading its values, so that numbers keep all of their digits. */
const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c

/** @param document valid JSON: an object, or an array of objects @returns an object on each line */
function jsonLines(document: Uint8Array): Buffer {
  const lines = Buffer.alloc(document.length + 1)
  let length = 0
  let depth = 0
  let isString = false
  // The depth of the members of an array of inputs.
  let outer = -1
  for (let i = 0; i < document.length; i++) {
    const byte = document[i]
    if (isString) {
      lines[length++] = byte
      if (byte === BACKSLASH) lines[length++] = document[++i]
      else if (byte === QUOTE) isString = false
      continue
    }
    if (byte === QUOTE) isString = true
    const isOpening = byte === 0x7b || byte === 0x5b
    const isClosing = byte === 0x7d || byte === 0x5d
    if (isOpening && depth++ === 0 && byte === 0x5b) {
      outer = 1
      continue
    }
    if (isClosing && --depth === 0 && outer === 1) continue
    const isEnd = byte === COMMA && depth === outer
    lines[length++] = isEnd ? NEWLINE : byte === NEWLINE || byte === RETURN ? SPACE : byte
  }
  lines[length++] = NEWLINE
  return lines.subarray(0, length)
}
