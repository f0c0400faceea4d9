/** The HTTP side of a peer. */
export { HttpListenError, type HttpOptions, type HttpServer, peerObject, serveHttp } from './server.js'
