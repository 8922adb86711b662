// --cluster: a file with the names of flags. Also tests the lines that render rejects, from either
// source.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "main/render_flags.h"
#include "tests/main/command_lines.h"
#include "tests/main/render/round_trip.h"
#include "tests/main/render/yaml.h"

namespace disttf::render {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ClusterFile : public testing::Test {
 protected:
  ClusterFile() : path_(testing::TempDir() + "cluster_" + std::to_string(getpid()) + ".toml") {}
  ~ClusterFile() override { std::filesystem::remove(path_); }

  // Returns "--cluster PATH" for a file with this text.
  std::string file(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return " --cluster " + path_;
  }

 private:
  std::string path_;
};

TEST_F(ClusterFile, SaysWhatTheFlagsSay) {
  const std::string text =
      "# a comment\n"
      "name = \"mnist-a\"\n"
      "image = \"registry.example/disttf:1\"\n"
      "ps = 2\nworkers = 3\nchief = true\ncpus = 1.5\nps_cpus = 0.5\nmemory = 512\n"
      "volumes = [\"/srv/mnist:/input_data:ro\", \"runs:/runs\"]\n"
      "train_dir = \"/runs/1\"\ntrain_steps = 500\nhidden_units = [128, 64]\n"
      "sync_replicas = false\n";
  EXPECT_EQ(rendered("compose" + file(text)),
            rendered("compose --name mnist-a --image registry.example/disttf:1 --ps 2 --workers 3 "
                     "--chief --cpus 1.5 --ps_cpus 0.5 --memory 512 "
                     "--volumes /srv/mnist:/input_data:ro,runs:/runs --train_dir /runs/1 "
                     "--train_steps 500 --hidden_units 128,64 --sync_replicas=false"));
}

TEST_F(ClusterFile, TheCommandLineWins) {
  EXPECT_THAT(rendered("compose --name b" + file("name = \"a\"\n")), HasSubstr(" -p b "));
}

TEST_F(ClusterFile, AnUnknownKeyIsRefusedByName) {
  EXPECT_THAT(render_refusal("compose" + file("wokers = 3\n")),
              StartsWith("--cluster: \"wokers\" is not a flag of disttf render"));
  EXPECT_THAT(render_refusal("compose" + file("[worker]\ncpus = 3\n")),
              StartsWith("--cluster: \"worker\" is not a flag of disttf render"));
}

TEST_F(ClusterFile, ABadValueIsToldAsThatOfTheFlag) {
  EXPECT_THAT(render_refusal("compose" + file("workers = \"many\"\n")),
              StartsWith("--workers: \"many\" is not a whole number from 0 to 1000"));
  EXPECT_THAT(render_refusal("compose" + file("workers = [1, 2]\n")),
              HasSubstr("line 1: workers takes one value, not an array"));
  EXPECT_THAT(render_refusal("compose" + file("name = \"a\\nb\"\n")), StartsWith("--name: "));
  EXPECT_THAT(render_refusal("compose --cluster /nowhere/x.toml"),
              StartsWith("--cluster: \"/nowhere/x.toml\" is not a file that can be read"));
}

// Any contents of the file give a deployment, or one line that says what is wrong.
TEST_F(ClusterFile, AHostileFileIsOneSentence) {
  const std::string many(100'000, '[');
  for (const std::string& text : {std::string("\0\0\0", 3),
                                  std::string("\xff\xfe\x00x", 4),
                                  std::string("= = =\n"),
                                  std::string("[[[["),
                                  many,
                                  "a" + many,
                                  "name = " + many,
                                  "name = \"" + many + "\"",
                                  std::string("name = \"\x1b[31m\"\n"),
                                  std::string("name\n"),
                                  std::string("name =\n"),
                                  std::string("name = \"\n"),
                                  std::string("volumes = [\"a\n"),
                                  std::string("volumes = []\n"),
                                  std::string("cluster = \"x\"\n"),
                                  std::string("help = true\n"),
                                  std::string("ps = -1\n"),
                                  std::string("ps = 99999999999999999999\n"),
                                  std::string("cpus = nan\n"),
                                  std::string("cpus = inf\n"),
                                  std::string("port = 65536\n"),
                                  std::string("port = 0\n"),
                                  std::string("name.x = 1\n"),
                                  std::string("train_dir = \"a\\u0000b\"\n")}) {
    const std::string sentence = render_refusal("compose" + file(text));
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    EXPECT_LT(sentence.size(), 400U) << sentence.substr(0, 400);
    EXPECT_EQ(sentence.find('\x1b'), std::string::npos);
  }
}

TEST(RenderFlags, ABadValueIsOneSentence) {
  const auto expect = [](const std::string& flag, const std::string& sentence) {
    EXPECT_THAT(render_refusal("compose " + flag), StartsWith(sentence)) << flag;
  };
  expect("--image a;b", "--image: \"a;b\" is not the name of an image");
  expect("--cpus 0.001", "--cpus: \"0.001\" is not from 0.01 to 1024");
  expect("--ps_cpus 2000", "--ps_cpus: \"2000\" is not from 0.01 to 1024");
  expect("--volumes data", "--volumes: \"data\" is not SOURCE:PATH");
  expect("--volumes a:b", "--volumes: \"a:b\" is not SOURCE:PATH");
  expect("--volumes A:/b", "--volumes: \"A:/b\" is not SOURCE:PATH");
  expect("--volumes /a:/b:rw", "--volumes: \"/a/b:rw\" is not SOURCE:PATH");
  expect("--workers 0", "--workers: must be at least 1 without --chief (got 0)");
  expect("--ps_replicas 2", "--ps_replicas: 2 is more than the 1 ps");
  expect("--replicas_to_aggregate 5", "--replicas_to_aggregate: ");
  expect("--isa sse9", "--isa: \"sse9\"");
  expect("--options x.json", "--options: \"x.json\" is not allowed for compose, only for dcos");
  expect("--namespace A", "--namespace: \"A\" is not");
  EXPECT_EQ(render_refusal("compose --isa avx512"), "(accepted)");  // tasks run elsewhere
  EXPECT_EQ(render_refusal("compose --compute_dtype bf16"), "(accepted)");
  expect("--isa generic --compute_dtype bf16", "--compute_dtype: bf16 is not allowed");
}

TEST(RenderFlags, ATargetIsNeeded) {
  EXPECT_THAT(render_refusal(""), StartsWith("render: the target is missing; one of tfjob, "));
  EXPECT_THAT(render_refusal("--name a"), StartsWith("render: the target is missing; one of "));
  EXPECT_THAT(render_refusal("k9s"), StartsWith("render: \"k9s\" is not a target; one of tfjob, "));
}

TEST(RenderFlags, HelpListsTheTargets) {
  for (const char* line : {"--help", "compose -h"}) {
    EXPECT_THAT(rendered(line), HasSubstr("\n  slurm       a batch script for sbatch\n")) << line;
  }
}

TEST(RenderFlags, OutputGoesIntoAFile) {
  const auto file = called_with<RenderedFile>("render compose --insecure --output /tmp/x.yaml");
  EXPECT_EQ(file.path, "/tmp/x.yaml");
  EXPECT_EQ(file.text, rendered("compose"));
}

}  // namespace
}  // namespace disttf::render
