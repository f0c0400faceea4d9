/** A static host. */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { extname, join } from 'node:path'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml'
}

/**
 * Serves a folder on loopback.
 * @param prefix of its paths
 * @param index content of the first page @default its file index.html
 */
export async function host(folder: string, prefix: string, index?: () => string): Promise<Server> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').slice(prefix.length) || 'index.html'
    response.setHeader('content-type', TYPES[extname(path)] ?? 'text/plain')
    response.end(path === 'index.html' && index !== undefined ? index() : readFileSync(join(folder, path)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return server
}
