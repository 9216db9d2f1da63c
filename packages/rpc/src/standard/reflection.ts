/** grpc.reflection.v1: the served services, for tools that have no .proto files (`buf curl`). */
import { type AnyDesc, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { status as Code } from '@grpc/grpc-js';
import { type BoundService, bind, ServerReflection } from '@rackwright/messages';

/** Reflection over `services`; reflection itself is listed too. */
export function createReflection(services: readonly DescService[]): BoundService {
  const index = indexOf([...services, ServerReflection]);
  return bind(ServerReflection, {
    serverReflectionInfo: async function* (requests) {
      for await (const request of requests) {
        const answered = { validHost: request.host, originalRequest: request };
        yield { ...answered, messageResponse: answer(index, request.messageRequest) };
      }
    },
  });
}

interface Index {
  readonly services: readonly DescService[];
  readonly files: ReadonlyMap<string, DescFile>;
  readonly symbols: ReadonlyMap<string, DescFile>;
}

type Question = { readonly case: string | undefined; readonly value?: unknown };

function answer(index: Index, question: Question) {
  switch (question.case) {
    case 'listServices': {
      const service = index.services.map(({ typeName }) => ({ name: typeName }));
      return { case: 'listServicesResponse', value: { service } } as const;
    }
    case 'fileByFilename':
      return fileAnswer(index.files.get(String(question.value)), String(question.value));
    case 'fileContainingSymbol':
      return fileAnswer(index.symbols.get(String(question.value)), String(question.value));
    case 'allExtensionNumbersOfType':
      return notFound(`${String(question.value)} has no extensions here`);
    case 'fileContainingExtension':
      return notFound('no extensions are served here');
    default:
      return refuse(Code.INVALID_ARGUMENT, 'message_request must say what is asked for');
  }
}

function fileAnswer(file: DescFile | undefined, fileName: string) {
  if (file === undefined) return notFound(`${fileName} is not served here`);
  const fileDescriptorProto = withImports(file).map(({ proto }) =>
    toBinary(FileDescriptorProtoSchema, proto),
  );
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } } as const;
}

function notFound(errorMessage: string) {
  return refuse(Code.NOT_FOUND, errorMessage);
}

function refuse(errorCode: Code, errorMessage: string) {
  return { case: 'errorResponse', value: { errorCode, errorMessage } } as const;
}

/** The file and all that it imports, each once, the file itself first. */
function withImports(file: DescFile): DescFile[] {
  const seen = new Set<DescFile>([file]);
  for (const each of seen) {
    for (const imported of each.dependencies) seen.add(imported);
  }
  return [...seen];
}

function indexOf(services: readonly DescService[]): Index {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  for (const file of services.flatMap((service) => withImports(service.file))) {
    // The descriptor's name ends in ".proto"; DescFile.name leaves that out.
    files.set(file.proto.name, file);
    for (const symbol of symbolsOf(file)) symbols.set(symbol, file);
  }
  return { services, files, symbols };
}

function symbolsOf(file: DescFile): string[] {
  const methods = file.services.flatMap((service) =>
    service.methods.map(({ name }) => `${service.typeName}.${name}`),
  );
  const types: AnyDesc[] = [...file.services, ...file.messages, ...file.enums];
  return [...methods, ...types.flatMap(namesOf)];
}

function namesOf(desc: AnyDesc): string[] {
  if (desc.kind === 'message') {
    return [desc.typeName, ...[...desc.nestedMessages, ...desc.nestedEnums].flatMap(namesOf)];
  }
  return 'typeName' in desc ? [desc.typeName] : [];
}
