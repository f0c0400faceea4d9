/** The hosts of `admb train --schedule …,zero=LEVEL,hosts=N,token=FILE`, among which a network is divided. */
import { on, once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import type { Hosts, HostsInit } from '../../l2l/index.js'
import { HostLostError } from '../../l2l/training/partition.js'
import { DEFAULT_PORT } from '../options/table.js'
import type { PartitionFlags } from '../options/values.js'
import { createLog } from '../output/log.js'
import { readToken } from '../peer/http.js'
import type { HostsNews, HostsThreadData, LendDevice, StartHosts } from './hosts-thread.js'

/** Largest message of a host. */
const MAX_BYTES = 2 ** 32
const STOP_MS = 1000

const SAID = { joined: 'has joined', left: 'has left', refused: 'was refused: its token is another' }

export interface JoiningHosts {
  /** Resolves when all hosts have joined. @throws UsageError, NetworkError */
  joined(): Promise<Hosts>
  close(): Promise<void>
}

/** The hosts that a schedule asks for; undefined if it asks for none. */
export function hostsFor(schedule: PartitionFlags | undefined): JoiningHosts | undefined {
  const { zero, hosts, token, port = DEFAULT_PORT } = schedule ?? {}
  if (zero === undefined || hosts === undefined || token === undefined) return undefined
  let thread: Worker | undefined
  return {
    async joined() {
      const log = createLog('info')
      const secret = await readToken(token, log, '--schedule …,token=')
      const workerData: HostsThreadData = { token: secret, count: hosts, port, maxBytes: MAX_BYTES }
      thread = new Worker(new URL('./hosts-thread.js', import.meta.url), { workerData })
      for await (const [news] of on(thread, 'message') as AsyncIterable<[HostsNews]>) {
        if (news.kind === 'failed') throw Object.assign(new Error(news.error.message), news.error)
        if (news.kind === 'listening') {
          const { addresses } = news
          const address = addresses.find(one => !one.startsWith('/ip4/127.')) ?? addresses[0]
          const how = `admb worker --token ${token} --peer ${address}`
          log('info', `waits for ${hosts - 1} more of the ${hosts} hosts: ${how}`, { addresses })
          continue
        }
        if (news.kind === 'ready' || news.kind === 'lost') continue
        const { kind, from, waitsFor } = news
        log(kind === 'joined' ? 'info' : 'warn', `a host ${SAID[kind]}`, { peer: from, waitsFor })
        if (waitsFor === 0) break
      }
      const lines = thread
      return {
        level: zero,
        count: hosts,
        start: init => start(lines, init),
        async lendDevice(host, device) {
          lines.postMessage({ host, device } satisfies LendDevice, [device.port])
          for await (const [news] of on(lines, 'message') as AsyncIterable<[HostsNews]>) {
            if (news.kind === 'ready' && news.host === host) return news.name
            if (news.kind === 'lost' && news.host === host) throw new HostLostError(news.reason)
          }
          return ''
        }
      }
    },
    async close() {
      if (thread === undefined) return
      thread.postMessage('stop')
      const timer = setTimeout(() => void thread?.terminate(), STOP_MS)
      await once(thread, 'exit')
      clearTimeout(timer)
    }
  }
}

function start(thread: Worker, init: HostsInit): MessageChannel['port1'] {
  const { port1, port2 } = new MessageChannel()
  thread.postMessage({ init, port: port2 } satisfies StartHosts, [port2])
  return port1
}
