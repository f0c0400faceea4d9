/**
 * Builds `dist/vendor`: TensorFlow.js as a few files, with the licences. As packages it takes 90 MB, most of which
 * is never loaded. `package.json` maps `#tfjs` and so on to these files. Beside them are the declarations of zod, which the types of
 * the library need; `scripts/prune-dist.ts` links them.
 */
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { licences, manifest } from './licences.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const modules = join(root, 'node_modules')
const out = join(root, 'dist/vendor')
const MISSING_TYPES = [
  'GPUBuffer',
  'Long',
  'HTMLCanvasElement',
  'HTMLImageElement',
  'HTMLVideoElement',
  'ImageData',
  'ImageBitmap',
  'OffscreenCanvas',
  'WebGLTexture',
  'WebGLRenderingContext',
  'WebGL2RenderingContext',
  'RequestInit',
  'RequestInfo',
  'Navigator',
  'IDBFactory',
  'Storage',
  'HTMLSourceElement',
  'WebGLContextAttributes'
]
const STAMP = join(out, 'versions.json')

/** The packages are bundled by themselves: their Node.js builds are single files that require nothing but the core. */
function copyTensorflow(): void {
  for (const part of ['core', 'backend-wasm', 'backend-cpu']) {
    const dist = join(modules, `@tensorflow/tfjs-${part}/dist`)
    const source = readFileSync(join(dist, `tf-${part}.node.js`), 'utf8')
    const linked = source
      .replaceAll("require('@tensorflow/tfjs-core')", "require('./tfjs-core.cjs')")
      .replace(/\n\/\/# sourceMappingURL=.*\n?$/, '\n')
    writeFileSync(join(out, `tfjs-${part}.cjs`), linked)
    for (const file of readdirSync(dist).filter(name => name.endsWith('.wasm')))
      cpSync(join(dist, file), join(out, file))
  }
}

/**
 * Copies the declarations of the core. They refer to WebGPU's types, which clash with those of TypeScript's DOM library, and
 * to types of browsers, which a program for Node.js does not have.
 */
function copyDeclarations(): void {
  const dist = join(modules, '@tensorflow/tfjs-core/dist')
  const types = join(out, 'tfjs-types')
  for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts') || file.endsWith('_test.d.ts')) continue
    const text = readFileSync(join(dist, file), 'utf8')
      .replace(/^\/\/\/ <.*\n/gm, '')
      .replaceAll('@tensorflow/tfjs-core/dist', relative(dirname(file), '.') || '.')
    const missing = MISSING_TYPES.filter(name => new RegExp(`\\b${name}\\b`).test(text))
    mkdirSync(dirname(join(types, file)), { recursive: true })
    writeFileSync(join(types, file), [...missing.map(name => `type ${name} = object;`), text].join('\n'))
  }
  writeFileSync(join(types, 'package.json'), '{ "type": "commonjs" }\n')
  writeFileSync(join(out, 'tfjs-core.d.cts'), "export * from './tfjs-types/index'\n")
}

/** Without those of its languages. */
function copyZod(): void {
  const from = join(modules, 'zod/v4')
  for (const part of ['classic', 'core']) {
    cpSync(join(from, part), join(out, 'zod', part), {
      recursive: true,
      filter: path => !/\.(?:c?js|d\.cts)$/.test(path)
    })
  }
  mkdirSync(join(out, 'zod/locales'))
  writeFileSync(join(out, 'zod/locales/index.d.ts'), 'export {}\n')
  const index = readFileSync(join(modules, 'zod/index.d.ts'), 'utf8')
  writeFileSync(join(out, 'zod/index.d.ts'), index.replaceAll('./v4/', './'))
}

const PACKAGES = ['@tensorflow/tfjs-core', '@tensorflow/tfjs-backend-wasm', '@tensorflow/tfjs-backend-cpu', 'zod']
/** What the files depend on: the packages and this script. */
const versions = JSON.stringify([
  ...PACKAGES.map(name => `${name} ${manifest(name).version}`),
  createHash('sha256')
    .update(readFileSync(fileURLToPath(import.meta.url)))
    .digest('hex')
])

if (!existsSync(STAMP) || readFileSync(STAMP, 'utf8') !== versions) {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  copyTensorflow()
  copyDeclarations()
  copyZod()
  writeFileSync(join(out, 'LICENSES.txt'), licences(PACKAGES))
  writeFileSync(STAMP, versions)
}
