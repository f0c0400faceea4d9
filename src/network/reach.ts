/** The first steps to a peer, which need neither keys nor libp2p: its name, a route, an open port. */
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { parseAddress, tcpEndOf } from './addresses.js'
import { type Pass, StepFailedError } from './diagnosis-step.js'
import { type PortProbe, probePort } from './port-probe.js'

/**
 * Name, route and port of the first TCP end on the way: of the relay, where there is one.
 * @returns who answers there, where the peer itself does so in plain TCP
 * @throws StepFailedError
 */
export async function reach(address: string, stepMs: number, pass: Pass): Promise<PortProbe | undefined> {
  const { host, port, isName, isPlain } = tcpEndOf(parseAddress(address))
  const ip = isName ? await resolve(host) : host
  pass('name', isName ? `${host} is ${ip}` : `${host} is no name, so nothing has to be looked up`)
  await checkRoute(ip, port)
  pass('route', `there is a way to ${ip}`)
  try {
    const answerer = await probePort(ip, port, stepMs)
    pass('port', `${port} takes connections`)
    return isPlain ? answerer : undefined
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH') throw noRoute(ip, code)
    if (code === 'ECONNREFUSED') {
      throw new StepFailedError('port', `nobody listens on ${ip} port ${port}`, 'start the peer, or correct the port')
    }
    const remedy = 'open the port in the firewalls between, and forward it where a router stands before the peer'
    throw new StepFailedError('port', `no answer from ${ip} port ${port} (${code})`, remedy)
  }
}

async function resolve(host: string): Promise<string> {
  try {
    return (await lookup(host)).address
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StepFailedError(
      'name',
      `${host} has no address (${code})`,
      'check its spelling, and the DNS of this machine'
    )
  }
}

/** Connecting a datagram socket asks the routing table and sends nothing. */
async function checkRoute(ip: string, port: number): Promise<void> {
  const socket = createSocket(isIPv6(ip) ? 'udp6' : 'udp4')
  try {
    await new Promise<void>((done, fail) => {
      socket.once('error', fail).once('connect', done)
      socket.connect(port, ip)
    })
  } catch (error) {
    throw noRoute(ip, (error as NodeJS.ErrnoException).code)
  } finally {
    socket.close()
  }
}

function noRoute(ip: string, code: string | undefined): StepFailedError {
  const remedy = 'connect this machine to that network (cable, VPN, IPv6), or take an address of one that it is in'
  return new StepFailedError('route', `no way to ${ip} (${code})`, remedy)
}
