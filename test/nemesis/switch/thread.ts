/**
 * The switch between the nodes, a thread of its own: it reads the packets of each node's TUN device and writes them to the device
 * of the receiver when its line delivers them. The address of node i ends in i + 1.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Random } from '../../../sim/engine/random.js'
import { EventQueue } from '../../support/virtual-time.js'
import { type Conditions, Lines } from './lines.js'
import { TunDevices } from './tun.js'

export interface SwitchData {
  readonly devices: readonly string[]
  readonly seed: number
  readonly conditions: Conditions
}

/** Longest sleep, in ms. New conditions take effect after at most this time. */
const SLEEP_MS = 5
/** Packets of one device that are read at a time. */
const BURST = 64
/** Offset of the last byte of the receiver's address in an IPv4 packet. */
const RECEIVER = 19

const { devices, seed, conditions } = workerData as SwitchData
const random = new Random(seed, 'switch')
const lines = new Lines(conditions, () => random.next())
const tun = new TunDevices(devices)
const queue = new EventQueue()
parentPort?.postMessage('ready')

function forward(from: number, packet: Buffer): void {
  const to = packet[RECEIVER] - 1
  if (packet[0] >> 4 !== 4 || to < 0 || to >= devices.length || to === from) return
  for (const at of lines.send(from, to, packet.length, queue.now)) queue.push(at, () => tun.write(to, packet))
}

for (;;) {
  while (queue.step(performance.now()));
  const message = parentPort && receiveMessageOnPort(parentPort)
  if (message?.message === 'stop') break
  if (message) lines.set(message.message as Conditions)
  const next = Math.min(SLEEP_MS, queue.nextAt - performance.now())
  for (const device of tun.wait(Math.max(0, Math.ceil(next)))) {
    queue.now = performance.now()
    for (let i = 0; i < BURST; i++) {
      const packet = tun.read(device)
      if (packet === undefined) break
      forward(device, packet)
    }
  }
}
parentPort?.close()
