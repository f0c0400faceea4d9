/** The HTTP side of a peer. */
export { HttpListenError, type HttpOptions, type HttpServer, serveHttp } from './server.js'
