/** The module's public API: the HTTP server of a peer. */
export { HttpListenError, HttpTokenRequiredError } from './errors.js'
export { isLoopback } from './guards/host.js'
export type { HttpOptions, PageOptions } from './options.js'
export { type HttpServer, serveHttp, servePage } from './server.js'
