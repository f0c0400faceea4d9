/** The HTTP side of a peer. */
export { HttpListenError } from './errors.js'
export type { HttpOptions } from './options.js'
export { type HttpServer, serveHttp } from './server.js'
