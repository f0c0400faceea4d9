/**
 * Matrix products by `cblas_sgemm` of an installed BLAS library, called through the optional package koffi. `admb
 * doctor` reports the library.
 */
import { DeviceError } from './types.js'

interface BlasOptions {
  /** Name or path of the library, or `none`. @default the first known library that is found */
  readonly library?: string
  /** Threads of a product; 1 suits several device workers on the same cores. @default 1 */
  readonly threads?: number
}

/** The form of a product: transposition of the factors, sizes and scale, as in GEMM. */
export interface ProductForm {
  readonly transposeA: boolean
  readonly transposeB: boolean
  readonly m: number
  readonly n: number
  readonly k: number
  readonly scale: number
  /** Whether the product is added to the output instead of replacing it. @default false */
  readonly accumulate?: boolean
}

/** A row-major float32 matrix in memory, possibly a view of a larger one. */
export interface Matrix {
  /** Address of the first element. */
  readonly address: number
  /** Elements from one row to the next. */
  readonly stride: number
}

export interface Blas {
  /** Library and version, for messages. */
  readonly description: string
  /** C = scale·op(A)·op(B), or C += scale·op(A)·op(B), where op(A) is m×k and op(B) is k×n. */
  multiply(form: ProductForm, a: Matrix, b: Matrix, c: Matrix): void
  /** Address of an array's first element, valid until its memory grows. */
  address(of: ArrayBufferView): number
}

type Koffi = typeof import('koffi')['default']
type Library = ReturnType<Koffi['load']>

/** In the order in which they are tried, without libraries with 64-bit sizes and the slow reference implementation. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  linux: ['libopenblas.so.0', 'libopenblas.so', 'libmkl_rt.so.2', 'libmkl_rt.so', 'libblis.so.4', 'libblis.so'],
  darwin: [
    '/System/Library/Frameworks/Accelerate.framework/Accelerate',
    'libopenblas.dylib',
    '/opt/homebrew/opt/openblas/lib/libopenblas.dylib'
  ],
  win32: ['libopenblas.dll', 'openblas.dll', 'mkl_rt.2.dll']
}

const ROW_MAJOR = 101
const NO_TRANSPOSE = 111
const TRANSPOSE = 112

/**
 * @returns undefined if no library is found, or `library` is `none`
 * @throws DeviceError if the given library cannot be used
 */
export async function loadBlas({ library, threads = 1 }: BlasOptions): Promise<Blas | undefined> {
  if (library === 'none') return undefined
  let koffi: Koffi
  try {
    koffi = (await import('koffi')).default
  } catch (error) {
    if (library === undefined) return undefined
    throw new DeviceError(`BLAS ${library} requires the package koffi; run npm ci again (${firstLine(error)})`)
  }
  for (const name of library === undefined ? (LIBRARIES[process.platform] ?? []) : [library]) {
    try {
      return checked(bind(koffi, koffi.load(name), name, threads))
    } catch (error) {
      if (library !== undefined) throw new DeviceError(`cannot use BLAS ${library}: ${firstLine(error)}`)
    }
  }
  return undefined
}

function bind(koffi: Koffi, library: Library, name: string, threads: number): Blas {
  const gemm = library.func(
    'void cblas_sgemm(int order, int transposeA, int transposeB, int m, int n, int k, float alpha, uint64_t a, int lda, uint64_t b, int ldb, float beta, uint64_t c, int ldc)'
  )
  const gemv = library.func(
    'void cblas_sgemv(int order, int transpose, int rows, int columns, float alpha, uint64_t a, int lda, uint64_t x, int incx, float beta, uint64_t y, int incy)'
  )
  limitThreads(library, threads)
  return {
    description: describe(library, name),
    multiply({ transposeA, transposeB, m, n, k, scale, accumulate }, a, b, c) {
      const beta = accumulate ? 1 : 0
      // For products with one row or column, gemm is several times slower than gemv.
      if (n === 1) {
        const [transpose, rows, columns] = transposeA ? [TRANSPOSE, k, m] : [NO_TRANSPOSE, m, k]
        const step = transposeB ? 1 : b.stride
        return gemv(
          ROW_MAJOR,
          transpose,
          rows,
          columns,
          scale,
          a.address,
          a.stride,
          b.address,
          step,
          beta,
          c.address,
          c.stride
        )
      }
      if (m === 1) {
        const [transpose, rows, columns] = transposeB ? [NO_TRANSPOSE, n, k] : [TRANSPOSE, k, n]
        const step = transposeA ? a.stride : 1
        return gemv(
          ROW_MAJOR,
          transpose,
          rows,
          columns,
          scale,
          b.address,
          b.stride,
          a.address,
          step,
          beta,
          c.address,
          1
        )
      }
      const left = transposeA ? TRANSPOSE : NO_TRANSPOSE
      const right = transposeB ? TRANSPOSE : NO_TRANSPOSE
      gemm(ROW_MAJOR, left, right, m, n, k, scale, a.address, a.stride, b.address, b.stride, beta, c.address, c.stride)
    },
    address: of => Number(koffi.address(of))
  }
}

/** MKL threading layers: none, and GCC's OpenMP. */
const MKL_LAYER = { sequential: 1, gnu: 3 }

/** Each library has its own function. Accelerate cannot be limited. */
function limitThreads(library: Library, threads: number): void {
  // MKL defaults to Intel's OpenMP, and exits the process if it is not installed.
  optional(library, 'int MKL_Set_Threading_Layer(int layer)')?.(threads === 1 ? MKL_LAYER.sequential : MKL_LAYER.gnu)
  for (const signature of [
    'void openblas_set_num_threads(int threads)',
    'void MKL_Set_Num_Threads(int threads)',
    'void bli_thread_set_num_threads(int64_t threads)'
  ]) {
    optional(library, signature)?.(threads)
  }
}

function describe(library: Library, name: string): string {
  const configuration = optional(library, 'char *openblas_get_config()')?.() as string | undefined
  const core = optional(library, 'char *openblas_get_corename()')?.() as string | undefined
  if (configuration === undefined) return name
  const version = configuration.split(' ').slice(0, 2).join(' ')
  return core === undefined ? version : `${version} for ${core}`
}

function optional(library: Library, signature: string): ((...args: unknown[]) => unknown) | undefined {
  try {
    return library.func(signature)
  } catch {
    return undefined
  }
}

/** @throws Error if a test product is wrong, for example because the library uses 64-bit sizes */
function checked(blas: Blas): Blas {
  const a = Float32Array.of(1, 2, 3, 4, 5, 6)
  const b = Float32Array.of(1, 0, 2, 0, 1, 3)
  const c = new Float32Array(4)
  const form = { transposeA: false, transposeB: true, m: 2, n: 2, k: 3, scale: 2 }
  const matrix = (of: Float32Array, stride: number) => ({ address: blas.address(of), stride })
  blas.multiply(form, matrix(a, 3), matrix(b, 3), matrix(c, 2))
  if (c.join() !== '14,22,32,46') throw new Error('cblas_sgemm returns wrong products')
  return blas
}

function firstLine(error: unknown): string {
  return (error as Error).message.split('\n')[0]
}
