/** The thread of `admb train` with the lines to its hosts, because a step blocks the thread of the trainer. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { awaitToken, BlockHosts, type DeviceLine, RemoteDevice } from '../../l2l/group/index.js'
import type { HostsInit, WorkerInit } from '../../l2l/index.js'
import { createNetwork, generateIdentityKey } from '../../network/index.js'
import { PROTOCOL_VERSION } from '../../task/learning-spec.js'

/** What the thread is started with. */
export interface HostsThreadData {
  readonly token: string
  /** Number of hosts, this process included. */
  readonly count: number
  /** 0 chooses a free one. */
  readonly port: number
  /** Largest message: the largest array. */
  readonly maxBytes: number
}

/** Once the hosts have joined. */
export interface StartHosts {
  readonly init: HostsInit
  readonly port: MessagePort
}

/** A host lends its device. */
export interface LendDevice {
  /** From 1. */
  readonly host: number
  readonly device: WorkerInit
}

/** What the thread sends. */
export type HostsNews =
  | { readonly kind: 'listening'; readonly addresses: readonly string[] }
  | { readonly kind: 'joined' | 'left' | 'refused'; readonly from: string; readonly waitsFor: number }
  | { readonly kind: 'ready'; readonly host: number; readonly name: string }
  | { readonly kind: 'lost'; readonly host: number; readonly reason: string }
  | { readonly kind: 'failed'; readonly error: { readonly code?: string; readonly message: string } }

const { token, count, port, maxBytes } = workerData as HostsThreadData
const parent = parentPort as MessagePort
const lines: DeviceLine[] = []

const tell = (news: HostsNews) => parent.postMessage(news)
const tellOf = (kind: 'joined' | 'left' | 'refused', from: string) =>
  tell({ kind, from, waitsFor: count - 1 - lines.length })

function accept(line: DeviceLine, from: string): void {
  const admitted = () => {
    if (lines.length === count - 1) return line.close('this run has all its hosts')
    lines.push(line)
    line.receive({
      message: () => line.close('a message came too early'),
      closed() {
        // Once all have joined, the run starts, and notices what is gone.
        if (lines.length === count - 1) return
        lines.splice(lines.indexOf(line), 1)
        tellOf('left', from)
      }
    })
    tellOf('joined', from)
  }
  awaitToken(line, token, admitted, () => tellOf('refused', from))
}

async function main(): Promise<void> {
  const network = await createNetwork({
    privateKey: await generateIdentityKey(),
    listen: [`/ip4/0.0.0.0/tcp/${port}`],
    hello: { protocol: PROTOCOL_VERSION, fields: [] },
    maxFrameBytes: maxBytes,
    log: () => undefined
  })
  network.onDevice(accept)
  let hosts: BlockHosts | undefined
  parent.on('message', async (message: StartHosts | LendDevice | 'stop') => {
    if (message === 'stop') {
      await network.stop()
      process.exit()
    } else if ('init' in message) hosts = new BlockHosts(lines, message.init, message.port)
    else if (hosts) {
      const { host, device } = message
      const ready = (name: string) => tell({ kind: 'ready', host, name })
      new RemoteDevice(hosts.deviceLine(host), device, ready, reason => tell({ kind: 'lost', host, reason }))
    }
  })
  tell({ kind: 'listening', addresses: network.addresses })
}

void main().catch(({ code, message }: Error & { readonly code?: string }) =>
  tell({ kind: 'failed', error: { code, message } })
)
