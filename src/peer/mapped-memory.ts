/**
 * Keeps long arrays in memory-mapped files of the state directory, for models that are larger than the memory of the machine. The operating
 * system keeps the pages in use in memory and writes the others to disk. The files are unlinked at once, so a crash leaves none behind.
 */
import { closeSync, constants, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { OptionError } from '../learning/index.js'
import type { Memory } from '../numeric/memory.js'
import { StateWriteError } from '../storage/index.js'

const FILE = 'arrays'
/** Most bytes that are kept for reuse: the first write to a page of a new file takes several times as long. */
const MOST_SPARE = 1 << 26

/** Values of Linux. */
const PROTECTION = 0b11
const SHARED = 1
const FAILED = 2n ** 64n - 1n

/** Maps files in `dir`, until this thread ends. @throws OptionError on other systems than Linux, and without the optional package koffi */
export async function mappedMemory(dir: string): Promise<Memory> {
  const { allocate, map, unmap, view } = await systemCalls()
  /** Bytes at each mapped address. */
  const mapped = new Map<bigint, number>()
  /** Addresses whose arrays are no longer used, by size. */
  const spare = new Map<number, bigint[]>()
  let spareBytes = 0
  const unused = new FinalizationRegistry(({ address, bytes }: { address: bigint; bytes: number }) => {
    if (spareBytes + bytes <= MOST_SPARE) {
      spare.set(bytes, [...(spare.get(bytes) ?? []), address])
      spareBytes += bytes
    } else {
      unmap(address, bytes)
      mapped.delete(address)
    }
  })
  // Finalizers do not run at the end of a thread, and the process may go on.
  process.once('exit', () => {
    for (const [address, bytes] of mapped) unmap(address, bytes)
  })
  const arrayAt = (address: bigint, bytes: number) => {
    const buffer = view(address, bytes)
    unused.register(buffer, { address, bytes })
    return buffer
  }
  return bytes => {
    const known = spare.get(bytes)?.pop()
    if (known !== undefined) {
      spareBytes -= bytes
      const buffer = arrayAt(known, bytes)
      new Uint8Array(buffer).fill(0)
      return buffer
    }
    const path = join(dir, FILE)
    const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
    try {
      unlinkSync(path)
      // A full disk would otherwise end the process when a page is written.
      const error = allocate(file, 0, bytes)
      const address = error === 0 ? map(null, bytes, PROTECTION, SHARED, file, 0) : FAILED
      if (address === FAILED) throw new StateWriteError(dir, new Error(`no room for ${bytes} bytes of --store disk`))
      mapped.set(address, bytes)
      return arrayAt(address, bytes)
    } finally {
      closeSync(file)
    }
  }
}

async function systemCalls() {
  const refusal = 'store disk (--store disk) of a peer requires Linux and the optional package koffi: remove it'
  if (process.platform !== 'linux') throw new OptionError(refusal)
  const { default: koffi } = await import('koffi').catch(() => {
    throw new OptionError(refusal)
  })
  const library = koffi.load(null)
  return {
    /** @returns an error number, 0 for none */
    allocate: library.func('int posix_fallocate(int file, int64_t from, int64_t bytes)') as (
      file: number,
      from: number,
      bytes: number
    ) => number,
    map: library.func('void *mmap(void *at, size_t bytes, int protection, int flags, int file, int64_t from)') as (
      at: null,
      bytes: number,
      protection: number,
      flags: number,
      file: number,
      from: number
    ) => bigint,
    unmap: library.func('int munmap(void *address, size_t bytes)') as (address: bigint, bytes: number) => number,
    view: (address: bigint, bytes: number) => koffi.view(address, bytes)
  }
}
