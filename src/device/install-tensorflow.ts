/**
 * Installs TensorFlow's kernels for the device `tensorflow`. The package tfjs-node downloads its native library from a
 * host that may be unreachable; in that case the library is extracted from pip's wheel, and the package's binding is
 * compiled against it. The installation is built and tested in a staging folder, and moved to its final place on
 * success.
 */

import { spawn } from 'node:child_process'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { packageFolder } from './optional-packages.js'
import type { TensorflowPackage } from './tensorflow.js'
import { DeviceError } from './types.js'

interface InstallOptions {
  /** `gpu` requires CUDA. @default 'cpu' */
  readonly kind?: 'cpu' | 'gpu'
  /** Called with a line for each step. */
  readonly log: (line: string) => void
}

const VERSION = '4.22.0'
const KINDS = {
  cpu: { name: '@tensorflow/tfjs-node', wheel: 'tensorflow-cpu' },
  gpu: { name: '@tensorflow/tfjs-node-gpu', wheel: 'tensorflow' }
} as const satisfies Record<string, { readonly name: TensorflowPackage; readonly wheel: string }>

const MINUTE = 60_000

/**
 * Takes minutes, and about 1.3 GB of disk space.
 * @returns the folder of the installation
 * @throws DeviceError naming the step that failed
 */
export async function installTensorflow({ kind = 'cpu', log }: InstallOptions): Promise<string> {
  const { name, wheel } = KINDS[kind]
  const folder = packageFolder('tensorflow')
  const staging = `${folder}.making`
  await rm(staging, { recursive: true, force: true })
  await mkdir(staging, { recursive: true })
  try {
    log(`npm: ${name} ${VERSION}`)
    await writeFile(join(staging, 'package.json'), '{ "private": true }\n')
    const packages = [`${name}@${VERSION}`, 'node-api-headers@1']
    await runCommand('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], {
      cwd: staging,
      limitMs: 10 * MINUTE
    })
    if (!(await runPackageInstaller(staging, name, kind, log))) await buildFromWheel(staging, name, wheel, log)
    log('test: a gradient')
    await checkGradient(staging, name)
    await rm(folder, { recursive: true, force: true })
    await rename(staging, folder)
    return folder
  } catch (error) {
    await rm(staging, { recursive: true, force: true })
    throw error
  }
}

/** Runs the package's install script. @returns whether it succeeded */
async function runPackageInstaller(
  home: string,
  name: string,
  kind: string,
  log: InstallOptions['log']
): Promise<boolean> {
  log('install script of the package')
  const path = [join(home, 'node_modules', '.bin'), process.env.PATH].join(delimiter)
  const cwd = join(home, 'node_modules', name)
  try {
    await runCommand(process.execPath, ['scripts/install.js', kind, 'download'], {
      cwd,
      env: { PATH: path },
      limitMs: 5 * MINUTE
    })
    await checkGradient(home, name)
    return true
  } catch (error) {
    log(`  failed: ${(error as Error).message}`)
    return false
  }
}

/** Extracts library and headers from pip's wheel and compiles the binding. */
async function buildFromWheel(home: string, name: string, wheel: string, log: InstallOptions['log']): Promise<void> {
  if (process.platform !== 'linux') {
    throw new DeviceError(
      `${name} can be built from pip's wheel on Linux only; allow its install script to download the library`
    )
  }
  const cwd = join(home, 'node_modules', name)
  const deps = join(cwd, 'deps')
  await rm(deps, { recursive: true, force: true })
  log(`pip: ${wheel}`)
  const download = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', home, wheel]
  await runCommand('python3', download, { cwd: home, limitMs: 15 * MINUTE })
  const file = (await readdir(home)).find(entry => entry.endsWith('.whl'))
  if (file === undefined) throw new DeviceError(`pip downloaded no wheel of ${wheel}`)
  await runCommand('python3', ['-c', UNPACK, join(home, file), deps], { cwd: home, limitMs: 5 * MINUTE })
  await rm(join(home, file))
  log('c++: the binding')
  const out = join(cwd, 'lib', 'napi-v8')
  await mkdir(out, { recursive: true })
  const libraries = ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2']
  const options = ['-std=c++17', '-O2', '-fPIC', '-shared', '-DNAPI_VERSION=8', '-Wl,-rpath,$ORIGIN/../../deps/lib']
  const includes = [join(home, 'node_modules', 'node-api-headers', 'include'), join(deps, 'include')]
  const sources = ['tfjs_backend.cc', 'tfjs_binding.cc'].map(source => join('binding', source))
  const compiler = process.env.CXX || 'g++'
  const output = ['-o', join(out, 'tfjs_binding.node')]
  await runCommand(
    compiler,
    [
      ...options,
      ...includes.flatMap(folder => ['-I', folder]),
      ...output,
      ...sources,
      ...libraries.map(library => join('deps', 'lib', library))
    ],
    { cwd, limitMs: 5 * MINUTE }
  )
}

/** Arguments: wheel, target folder. Extracts the libraries and the headers that the binding includes. */
const UNPACK = `
import os, shutil, sys, zipfile
wheel, folder = sys.argv[1:]
headers = tuple('tensorflow/include/' + part for part in ('tensorflow/c/', 'tensorflow/core/platform/', 'tsl/', 'xla/tsl/'))
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        base = name.split('/')[-1]
        if name.startswith('tensorflow/libtensorflow_') and '.so' in base:
            path = os.path.join(folder, 'lib', base)
        elif name.startswith(headers) and base.endswith(('.h', '.inc')):
            path = os.path.join(folder, *name.split('/')[1:])
        else:
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with archive.open(name) as source, open(path, 'wb') as target:
            shutil.copyfileobj(source, target)
`

/** The sum of the entries of x·x has the gradient 1·xᵀ + xᵀ·1. */
const GRADIENT = `
require('node:util').isNullOrUndefined ??= value => value === undefined || value === null
const tf = require(process.argv[1])
const gradient = tf.grad(x => tf.sum(tf.matMul(x, x)))(tf.tensor2d([[1, 2], [3, 4]]))
if (tf.getBackend() !== 'tensorflow') throw new Error('the backend does not start')
if (gradient.dataSync().join() !== '7,11,9,13') throw new Error('wrong gradients')
`

async function checkGradient(home: string, name: string): Promise<void> {
  const args = ['-e', GRADIENT, join(home, 'node_modules', name)]
  await runCommand(process.execPath, args, { cwd: home, limitMs: 2 * MINUTE })
}

/** Runs a program and waits for its end, for installations. */
interface CommandOptions {
  readonly cwd: string
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** Milliseconds after which the program is killed. */
  readonly limitMs: number
}

/** @throws DeviceError with the most informative line of the output, if the program fails */
export function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<void> {
  const { cwd, env, limitMs } = options
  const shown = [command, ...args.slice(0, 2)].join(' ').split('\n')[0]
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs)
    let output = ''
    const append = (text: Buffer) => {
      output = (output + text).slice(-20_000)
    }
    child.stdout.on('data', append)
    child.stderr.on('data', append)
    child.once('error', error => {
      clearTimeout(timer)
      reject(new DeviceError(`cannot start ${command}: ${error.message}`))
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve()
      else if (signal !== null) reject(new DeviceError(`${shown} timed out after ${Math.round(limitMs / 1000)} s`))
      else reject(new DeviceError(`${shown} failed: ${errorLine(output)}`))
    })
  })
}

/** The last line that contains an error, otherwise the last line. */
function errorLine(output: string): string {
  const lines = output.split('\n').filter(line => line.trim() !== '')
  return (lines.findLast(line => /(^|\s)(\w*Error|error|fatal)\b.*:/.test(line)) ?? lines.at(-1) ?? 'no output').trim()
}
