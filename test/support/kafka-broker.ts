/**
 * A broker that speaks as much of Kafka's protocol as a client needs to produce and consume: the oldest version of each request
 * that clients still use, one broker, groups of one member, and topics of two partitions that exist once they are named. Messages
 * are kept as the bytes that were produced.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const PARTITIONS = 2
const NODE = 1

/** Requests by key, with the version that is understood. */
const VERSIONS: Readonly<Record<number, number>> = {
  0: 2, // Produce
  1: 2, // Fetch
  2: 1, // ListOffsets
  3: 1, // Metadata
  9: 1, // OffsetFetch
  10: 0, // FindCoordinator
  11: 0, // JoinGroup
  12: 0, // Heartbeat
  13: 0, // LeaveGroup
  14: 0, // SyncGroup
  18: 0 // ApiVersions
}

class Reader {
  #at = 0
  constructor(readonly bytes: Buffer) {}
  int16 = () => this.#take(2).readInt16BE()
  int32 = () => this.#take(4).readInt32BE()
  int64 = () => this.#take(8).readBigInt64BE()
  string = () => this.#take(this.int16()).toString()
  data = () => this.#take(this.int32())
  array = <T>(item: () => T): T[] => Array.from({ length: this.int32() }, item)

  /** A length of −1 stands for null. */
  #take(length: number): Buffer {
    const from = this.#at
    this.#at += Math.max(0, length)
    return this.bytes.subarray(from, this.#at)
  }
}

const int8 = (value: number) => Buffer.from(Int8Array.of(value).buffer)
const int16 = (value: number) => Buffer.from([(value >> 8) & 255, value & 255])
function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
function int64(value: bigint | number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(value))
  return bytes
}
const string = (text: string) => Buffer.concat([int16(Buffer.byteLength(text)), Buffer.from(text)])
const data = (bytes: Buffer) => Buffer.concat([int32(bytes.length), bytes])
const array = (items: readonly Buffer[]) => Buffer.concat([int32(items.length), ...items])
const NONE = int16(0)

export class KafkaBroker {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #topics = new Map<string, Buffer[][]>()
  #generation = 0

  private constructor() {
    this.#server = createServer(socket => this.#serve(socket))
  }

  static async start(): Promise<KafkaBroker> {
    const broker = new KafkaBroker()
    broker.#server.listen(0, '127.0.0.1')
    await once(broker.#server, 'listening')
    return broker
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  stop(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => this.#sockets.delete(socket))
    let held = Buffer.alloc(0)
    // Answers are in the order of the requests.
    let answered: Promise<void> = Promise.resolve()
    socket.on('data', chunk => {
      held = Buffer.concat([held, chunk])
      while (held.length >= 4 && held.length >= 4 + held.readInt32BE(0)) {
        const request = new Reader(held.subarray(4, 4 + held.readInt32BE(0)))
        held = held.subarray(4 + held.readInt32BE(0))
        const [key, , correlation] = [request.int16(), request.int16(), request.int32()]
        request.string()
        answered = answered.then(async () => {
          socket.write(data(Buffer.concat([int32(correlation), await this.#answer(key, request)])))
        })
      }
    })
  }

  /** The messages of a partition. */
  #log(topic: string, partition: number): Buffer[] {
    let partitions = this.#topics.get(topic)
    if (partitions === undefined) {
      partitions = Array.from({ length: PARTITIONS }, () => [])
      this.#topics.set(topic, partitions)
    }
    return partitions[partition]
  }

  async #answer(key: number, request: Reader): Promise<Buffer> {
    switch (key) {
      case 0:
        return this.#produce(request)
      case 1:
        return this.#fetch(request)
      case 2:
        request.int32()
        return this.#perPartition(request, (topic, partition) => {
          const offset = request.int64() === -2n ? 0 : this.#log(topic, partition).length
          return Buffer.concat([int32(partition), NONE, int64(-1), int64(offset)])
        })
      case 3:
        return this.#metadata(request)
      case 9:
        request.string()
        return this.#perPartition(request, (_topic, partition) =>
          Buffer.concat([int32(partition), int64(-1), string(''), NONE])
        )
      case 10:
        return Buffer.concat([NONE, int32(NODE), string('127.0.0.1'), int32(this.port)])
      case 11:
        return this.#join(request)
      case 12:
      case 13:
        return NONE
      case 14: {
        request.string()
        request.int32()
        request.string()
        const assignments = request.array(() => [request.string(), request.data()] as const)
        return Buffer.concat([NONE, data(assignments[0]?.[1] ?? Buffer.alloc(0))])
      }
      case 18: {
        const versions = Object.entries(VERSIONS).map(([api, version]) =>
          Buffer.concat([int16(Number(api)), int16(version), int16(version)])
        )
        return Buffer.concat([NONE, array(versions)])
      }
      default:
        throw new Error(`the request ${key} is not known`)
    }
  }

  #perPartition(request: Reader, answer: (topic: string, partition: number) => Buffer): Buffer {
    const topics = request.array(() => {
      const topic = request.string()
      return Buffer.concat([string(topic), array(request.array(() => answer(topic, request.int32())))])
    })
    return array(topics)
  }

  #produce(request: Reader): Buffer {
    request.int16()
    request.int32()
    const answers = this.#perPartition(request, (topic, partition) => {
      const log = this.#log(topic, partition)
      const first = log.length
      const set = new Reader(request.data())
      for (let left = set.bytes.length; left > 0; ) {
        set.int64()
        const message = set.data()
        log.push(message)
        left -= 12 + message.length
      }
      return Buffer.concat([int32(partition), NONE, int64(first), int64(-1)])
    })
    return Buffer.concat([answers, int32(0)])
  }

  async #fetch(request: Reader): Promise<Buffer> {
    request.int32()
    const longest = request.int32()
    request.int32()
    let isEmpty = true
    const answers = this.#perPartition(request, (topic, partition) => {
      const log = this.#log(topic, partition)
      const offset = Number(request.int64())
      request.int32()
      const messages = log.slice(offset, offset + 50).map((bytes, i) => Buffer.concat([int64(offset + i), data(bytes)]))
      isEmpty &&= messages.length === 0
      return Buffer.concat([int32(partition), NONE, int64(log.length), data(Buffer.concat(messages))])
    })
    if (isEmpty) await sleep(Math.min(longest, 50))
    return Buffer.concat([int32(0), answers])
  }

  #metadata(request: Reader): Buffer {
    const names = request.array(() => request.string())
    const broker = Buffer.concat([int32(NODE), string('127.0.0.1'), int32(this.port), int16(-1)])
    const topics = names.map(name => {
      const partitions = Array.from({ length: PARTITIONS }, (_, partition) => {
        this.#log(name, partition)
        const replicas = array([int32(NODE)])
        return Buffer.concat([NONE, int32(partition), int32(NODE), replicas, replicas])
      })
      return Buffer.concat([NONE, string(name), int8(0), array(partitions)])
    })
    return Buffer.concat([array([broker]), int32(NODE), array(topics)])
  }

  /** A member is the leader of a new generation. */
  #join(request: Reader): Buffer {
    request.string()
    request.int32()
    const member = request.string() || `member-${this.#generation + 1}`
    request.string()
    const [[protocol, metadata]] = request.array(() => [request.string(), request.data()] as const)
    const members = array([Buffer.concat([string(member), data(metadata)])])
    return Buffer.concat([NONE, int32(++this.#generation), string(protocol), string(member), string(member), members])
  }
}
