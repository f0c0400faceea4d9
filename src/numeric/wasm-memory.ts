/** Compiled functions of the assembler, with the memory in which they work: their own, or one that threads share. */
import { assemble, MAX_PAGES, type WasmFunction } from './assembler.js'

/** The WebAssembly API, which the types of Node.js lack. */
export interface Runtime {
  readonly Memory: {
    new (limits: { readonly initial: number }): { readonly buffer: ArrayBuffer; grow(pages: number): number }
    new (limits: { readonly initial: number; readonly maximum: number; readonly shared: true }): SharedMemory
  }
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: object }
}

/** A `WebAssembly.Memory` of a fixed size that threads share. It is passed to another thread as it is. */
export interface SharedMemory {
  readonly buffer: SharedArrayBuffer
}

declare const WebAssembly: Runtime

const PAGE_BYTES = 2 ** 16

/** Compiles functions that use the given `WebAssembly.Memory`. @returns the functions by name */
export function instantiate(
  { Module, Instance }: Runtime,
  functions: readonly WasmFunction[],
  memory: object,
  isShared = false
): Readonly<Record<string, (...args: number[]) => void>> {
  const { exports } = new Instance(moduleOf(Module, functions, isShared), { env: { memory } })
  return exports as ReturnType<typeof instantiate>
}

/** Compiled functions, for memories that threads share and for others. */
const compiled = [new WeakMap<readonly WasmFunction[], object>(), new WeakMap<readonly WasmFunction[], object>()]

function moduleOf(Module: Runtime['Module'], functions: readonly WasmFunction[], isShared: boolean): object {
  const modules = compiled[Number(isShared)]
  const module = modules.get(functions) ?? new Module(assemble(functions, isShared))
  modules.set(functions, module)
  return module
}

/** Functions with a memory of their own, of this many bytes. */
export function withMemory(functions: readonly WasmFunction[], bytes: number) {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE_BYTES) })
  return { kernels: instantiate(WebAssembly, functions, memory), buffer: memory.buffer }
}

/** Functions with a memory that grows. Arrays in it are void after it has grown. */
export function withGrowingMemory(functions: readonly WasmFunction[], bytes: number) {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE_BYTES) })
  return {
    kernels: instantiate(WebAssembly, functions, memory),
    get buffer() {
      return memory.buffer
    },
    /** Whether it has at least this many bytes now. */
    growTo(bytes: number): boolean {
      const missing = Math.ceil(bytes / PAGE_BYTES) - memory.buffer.byteLength / PAGE_BYTES
      try {
        if (missing > 0) memory.grow(missing)
        return true
      } catch (error) {
        if (error instanceof RangeError) return false
        throw error
      }
    }
  }
}

/** Undefined if the bytes exceed the maximum of a memory, or there is no room for them. */
export function sharedMemory(bytes: number): SharedMemory | undefined {
  const pages = Math.ceil(bytes / PAGE_BYTES)
  if (pages > MAX_PAGES) return undefined
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Functions for this thread that work in a memory that threads share. */
export function withSharedMemory(functions: readonly WasmFunction[], memory: SharedMemory) {
  return instantiate(WebAssembly, functions, memory, true)
}
