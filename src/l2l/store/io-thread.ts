/** Entry point of the threads that read and write the layer file, one each, so that reads do not wait for writes. */
import { closeSync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, renameSync, writeSync } from 'node:fs'
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { crc32 } from 'node:zlib'
import { FLOAT_BYTES } from '../../nn/types.js'
import { isFiniteBlock } from '../../numeric/numbers.js'
import { SharedSignals } from '../training/shared-signals.js'
import { COMMIT, type IoCommand, IoQueue, READ } from './io-queue.js'
import {
  type ArrayLengths,
  aligned,
  type Commit,
  commitFile,
  commitText,
  FileLayout,
  openLayers,
  readAll
} from './layer-file.js'

export interface IoThreadData {
  readonly folder: string
  readonly lengths: ArrayLengths
  readonly isDirect: boolean
  readonly queue: SharedArrayBuffer
  readonly memories: readonly SharedArrayBuffer[]
  /** CRC-32 of each array in each slot. */
  readonly checksums: SharedArrayBuffer
  /** Signals of the threads that update blocks; undefined if there are none. */
  readonly signals: { readonly shared: SharedArrayBuffer; readonly threads: number } | undefined
  /** Receives the contents of commits; sends an error. */
  readonly port: MessagePort
}

/** What an I/O thread sends before it stops working. */
export interface IoFailure {
  readonly kind: 'damaged' | 'unwritable' | 'diverged'
  readonly what: string
}

/** The slots are those after the writes before the commit. */
export type CommitMessage = Pick<Commit, 'slots' | 'content'>

class Failure extends Error {
  constructor(readonly failure: IoFailure) {
    super(failure.what)
  }
}

const {
  folder,
  lengths,
  isDirect,
  queue,
  memories,
  checksums: shared,
  signals: updates,
  port
} = workerData as IoThreadData
const layout = new FileLayout(lengths)
const checksums = new Int32Array(shared)
const signals = updates && new SharedSignals(updates.threads, lengths.length, updates.shared)
let file: number | undefined

new IoQueue(queue).serve(run, error => {
  const failure = error instanceof Failure ? error.failure : { kind: 'unwritable', what: error.message }
  port.postMessage(failure)
})
if (file !== undefined) closeSync(file)
port.close()

function run(command: IoCommand): void {
  file ??= opened()
  if (command.kind === READ) read(file, command)
  else if (command.kind === COMMIT) commit(file)
  else write(file, command)
}

function opened(): number {
  const opened = openLayers(folder, isDirect)
  ftruncateSync(opened, layout.bytes)
  return opened
}

function numbersOf({ block, array, memory, offset }: IoCommand): Float32Array {
  return new Float32Array(memories[memory], offset, lengths[block][array])
}

function paddedBytesOf({ block, array, memory, offset }: IoCommand): Uint8Array {
  return new Uint8Array(memories[memory], offset, aligned(lengths[block][array] * FLOAT_BYTES))
}

/** Checksum of the bytes of the numbers, without the padding. */
function checksumOf(command: IoCommand): number {
  return crc32(new Uint8Array(memories[command.memory], command.offset, numbersOf(command).byteLength)) | 0
}

function read(from: number, command: IoCommand): void {
  const { block, array, slot } = command
  const position = layout.position(block, array, slot)
  try {
    readAll(from, paddedBytesOf(command), position)
  } catch (error) {
    throw new Failure({ kind: 'damaged', what: (error as Error).message })
  }
  if (checksumOf(command) === checksums[layout.checksumIndex(block, array, slot)]) return
  throw new Failure({ kind: 'damaged', what: `array ${array} of block ${block} does not match its checksum` })
}

function write(to: number, command: IoCommand): void {
  const { block, array, slot } = command
  signals?.wait(block)
  if (!isFiniteBlock(numbersOf(command))) throw new Failure({ kind: 'diverged', what: `block ${block}` })
  checksums[layout.checksumIndex(block, array, slot)] = checksumOf(command)
  const bytes = paddedBytesOf(command)
  const position = layout.position(block, array, slot)
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(to, bytes, done, bytes.length - done, position + done)
  }
}

function commit(to: number): void {
  const { message } = receiveMessageOnPort(port) as { readonly message: CommitMessage }
  const { slots, content } = message
  fdatasyncSync(to)
  const current = lengths.flatMap((arrays, block) =>
    arrays.map((_, array) => checksums[layout.checksumIndex(block, array, slots[block])])
  )
  const path = commitFile(folder)
  writeSynced(`${path}.new`, commitText({ slots, checksums: current, lengths, content }))
  renameSync(`${path}.new`, path)
  // Windows does not sync folders.
  if (process.platform === 'win32') return
  const parent = openSync(folder, 'r')
  fsyncSync(parent)
  closeSync(parent)
}

function writeSynced(path: string, text: string): void {
  const opened = openSync(path, 'w')
  try {
    const bytes = Buffer.from(text)
    for (let done = 0; done < bytes.length; ) done += writeSync(opened, bytes, done)
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
