import torch
import ge
import acl

# 第一步：初始化 ACL 和 GE
acl.init()
ge.init()

# 第二步：准备输入 tensor（必须是静态 shape）
# GE 要求输入 shape 是固定的，动态 shape 需要额外处理
batch_size = 1
seq_len = 512
hidden_dim = 768

# 创建示例模型
class SimpleAttention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        # 固定参数，不依赖输入
        self.q_proj = torch.nn.Linear(hidden_dim, hidden_dim)
        self.k_proj = torch.nn.Linear(hidden_dim, hidden_dim)
        self.v_proj = torch.nn.Linear(hidden_dim, hidden_dim)
        self.o_proj = torch.nn.Linear(hidden_dim, hidden_dim)

    def forward(self, x):
        # 静态计算图，无动态分支
        q = self.q_proj(x)
        k = self.k_proj(x)
        v = self.v_proj(x)

        # 手动实现 attention（方便 GE 识别融合模式）
        scores = torch.matmul(q, k.transpose(-2, -1)) / (hidden_dim ** 0.5)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)

        return self.o_proj(out)

model = SimpleAttention()
model.eval()

# 第三步：trace 模型（生成静态计算图）
# 用固定的 shape 做 trace，GE 要求
dummy_input = torch.randn(batch_size, seq_len, hidden_dim).npu()
traced_model = torch.jit.trace(model, dummy_input)

# 第四步：配置 GE 图选项
ge_options = ge.GraphOptions()
ge_options.graph_name = "simple_attention"
ge_options.enable_mem_reuse = True # 开启内存复用
ge_options.op_backend = "aicore"
ge_options.mem_workspace_size = 8 * 1024 * 1024 * 1024 # 8GB

# 第五步：编译生成 OM 模型
graph = ge.Graph("attention_graph")
ge.build_graph(graph, traced_model, ge_options)

# 第六步：导出 OM 文件
om_model = graph.export("simple_attention.om")

# 第七步：加载 OM 模型进行推理
from ge import session

sess = session.Session()
sess.load_model("simple_attention.om")

# 实际推理
input_data = torch.randn(batch_size, seq_len, hidden_dim).npu()
output = sess.run(input_data)

print(f"输出 shape: {output.shape}")
print(f"输出设备: {output.device}")
