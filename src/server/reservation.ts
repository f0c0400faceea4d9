/** Holds an HTTP address until the server listens there, so that a peer whose port is in use fails before it joins a network. */
import { createServer } from 'node:net'
import { HttpListenError } from './errors.js'

/**
 * @returns frees the address
 * @throws HttpListenError
 */
export async function reserveAddress({
  host = '127.0.0.1',
  port
}: {
  readonly host?: string
  readonly port: number
}): Promise<() => Promise<void>> {
  // Any port is free.
  if (port === 0) return async () => undefined
  const holder = createServer(connection => connection.destroy())
  await new Promise<void>((resolve, reject) => {
    holder.once('error', error => reject(new HttpListenError(host, port, error)))
    holder.listen({ host, port }, resolve)
  })
  holder.unref()
  return () => new Promise(resolve => holder.close(() => resolve()))
}
