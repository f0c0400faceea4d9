/** `GET /predictor`: the serving predictor as a safetensors file. */
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { RouteOptions } from '../options.js'
import { failures } from '../schemas/index.js'

/** The media type that the Hugging Face Hub uses for such files. */
const TYPE = 'application/octet-stream'

export async function predictorRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  const schema = {
    summary: 'The serving predictor as a safetensors file',
    response: {
      200: { description: 'The file', content: { [TYPE]: { schema: { contentMediaType: TYPE } } } },
      304: { description: 'The predictor still matches the ETag in If-None-Match', type: 'null' },
      ...failures
    }
  }
  app.get('/predictor', { config: { roles: ['predict', 'learn'] }, schema }, async (request, reply) => {
    const { file, bytes, chunks, etag: digest, cancel } = await peer.download()
    const etag = digest && `"${digest}"`
    if (etag) {
      reply.header('etag', etag)
      if (matches(request.headers['if-none-match'], etag)) {
        cancel()
        return reply.code(304).send()
      }
    }
    return reply
      .type(TYPE)
      .header('content-length', bytes)
      .header('content-disposition', `attachment; filename="${file}"`)
      .header('cache-control', 'no-cache')
      .send(Readable.from(chunks, { objectMode: false }))
  })
}

function matches(header: string | undefined, etag: string): boolean {
  const etags = header?.split(',').map(value => value.trim().replace(/^W\//, '')) ?? []
  return etags.includes(etag) || etags.includes('*')
}
