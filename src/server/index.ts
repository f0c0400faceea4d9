/** The HTTP side of a peer. */
export { HttpListenError, type HttpOptions, type HttpServer, type PageOptions, serveHttp, servePage } from './server.js'
